import { l10n } from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import type { Child } from "../../engine/subagent.ts";
import { visible } from "../plain-text.ts";

/** The agent that asks: `"Push the branch" (general)`. */
export function asker({ agent, description }: Pick<Child, "agent" | "description">): string {
  // A direction-changing character would also affect the subject that follows.
  const task = visible(oneLine(description));
  return agent === undefined
    ? l10n.t('The agent of "{0}"', task)
    : l10n.t('"{1}" ({0})', visible(agent), task);
}
