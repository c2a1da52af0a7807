import * as vscode from "vscode";
import { modelText } from "../engine/model-ref.ts";
import { type LaunchPlan, type PromptTarget, splitSections } from "./launch-plan.ts";
import { withoutIcons } from "./plain-text.ts";

/** The actions above a prompt, as code lenses. */
export function promptLenses(document: vscode.TextDocument, target: PromptTarget): vscode.CodeLens[] {
  const { uri } = document;
  const lens = (title: string, command: string, ...args: readonly unknown[]): vscode.CodeLens =>
    new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command, arguments: [uri, ...args] });
  if (target.kind === "resume") {
    const title = vscode.l10n.t('Resume "{0}" (Ctrl+Enter)', withoutIcons(target.description));
    return [lens(title, "asyncagents.launchPrompt")];
  }
  const { plan } = target;
  const sections = splitSections(document.getText()).length;
  const lenses = [
    lens(launchTitle(plan, sections), "asyncagents.launchPrompt"),
    lens(vscode.l10n.t("Options: {0}", choices(plan)), "asyncagents.promptOptions"),
  ];
  if (sections < 2) return lenses;
  const other = plan.splits
    ? vscode.l10n.t("As One Prompt")
    : vscode.l10n.t("As {0} Prompts, Split at ---", sections);
  return [...lenses, lens(other, "_asyncagents.splitPrompt", !plan.splits)];
}

function launchTitle({ agents, fork, splits }: LaunchPlan, sections: number): string {
  const count = (splits ? Math.max(sections, 1) : 1) * Math.max(agents.length, 1);
  if (fork) return vscode.l10n.t("Review the Fork (Ctrl+Enter)");
  return count === 1
    ? vscode.l10n.t("Launch Task (Ctrl+Enter)")
    : vscode.l10n.t("Launch {0} Tasks (Ctrl+Enter)", count);
}

function choices({ agents, model, splits, subject, leavesOutSubject }: LaunchPlan): string {
  return [
    agents.length > 0 ? agents.join(", ") : vscode.l10n.t("select agents"),
    modelText(model),
    subject && !leavesOutSubject ? vscode.l10n.t("with {0}", withoutIcons(subject.title)) : "",
    splits ? vscode.l10n.t("a task for each section between lines of ---") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
