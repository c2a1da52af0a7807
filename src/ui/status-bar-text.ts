import * as vscode from "vscode";
import type { OpenRequest } from "../engine/engine.ts";
import { oneLine } from "../engine/fork/excerpt.ts";
import type { Child } from "../engine/subagent.ts";
import { enumerate } from "./translate.ts";
import { activity } from "./tree/words.ts";

/** More agents are counted, not named. */
const NAMED = 10;

/** What the status bar tells of. */
export interface Activity {
  /** Agents at work that wait for nobody. */
  readonly working: readonly Child[];
  readonly requests: readonly OpenRequest[];
  /** The connection is lost, and this the last that was known. */
  readonly isLost: boolean;
}

export interface StatusBarText {
  /** Empty: there is nothing to tell. */
  readonly text: string;
  /** For who cannot see the icons. */
  readonly label: string;
  readonly tooltip: vscode.MarkdownString;
}

export function describe({ working, requests, isLost }: Activity): StatusBarText {
  const text = [
    working.length > 0 && `${isLost ? "$(debug-disconnect)" : "$(sync~spin)"} ${working.length}`,
    requests.length > 0 && `$(bell-dot) ${requests.length}`,
  ];
  const parts = [
    isLost && vscode.l10n.t("the connection to OpenCode was lost"),
    working.length > 0 && agents(working.length),
    requests.length > 0 && waiting(requests.length),
  ];
  return {
    text: text.filter(Boolean).join(" "),
    label: vscode.l10n.t("Async Agents: {0}", enumerate(parts)),
    tooltip: tooltip({ working, requests, isLost }),
  };
}

function agents(count: number): string {
  return count === 1 ? vscode.l10n.t("1 agent works") : vscode.l10n.t("{0} agents work", count);
}

function waiting(count: number): string {
  return count === 1
    ? vscode.l10n.t("1 request waits for you")
    : vscode.l10n.t("{0} requests wait for you", count);
}

function tooltip({ working, requests, isLost }: Activity): vscode.MarkdownString {
  const markdown = new vscode.MarkdownString();
  // What agents wrote is text, never Markdown.
  const list = (heading: string, children: readonly Child[]): void => {
    if (children.length === 0) return;
    markdown.appendMarkdown(`**${heading}**\n\n`);
    for (const child of children.slice(0, NAMED))
      markdown.appendMarkdown("- ").appendText(line(child)).appendMarkdown("\n");
    const more = children.length - NAMED;
    if (more > 0) markdown.appendMarkdown(`- ${vscode.l10n.t("and {0} more", more)}\n`);
    markdown.appendMarkdown("\n");
  };
  if (isLost)
    markdown.appendMarkdown(
      `${vscode.l10n.t("The connection to OpenCode was lost; this may be out of date.")}\n\n`,
    );
  list(
    vscode.l10n.t("Waiting for you"),
    requests.map(({ child }) => child),
  );
  list(vscode.l10n.t("At work"), working);
  return markdown;
}

function line(child: Child): string {
  const { description, agent } = child;
  return [oneLine(description), agent, activity(child, Date.now())].filter(Boolean).join(" · ");
}
