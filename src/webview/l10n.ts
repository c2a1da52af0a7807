import type { ActivityView, TaskView } from "../protocol/output.ts";

/** Translates texts into the editor's language. */
export class L10n {
  /** @param translations by their English text */
  constructor(private readonly translations: Readonly<Record<string, string>>) {}

  /** The values replace `{0}`, `{1}`, … */
  t(english: string, ...values: readonly string[]): string {
    const text = this.translations[english] ?? english;
    return text.replace(/\{(\d)\}/g, (place, index: string) => values[Number(index)] ?? place);
  }
}

export function statusWord(l10n: L10n, status: TaskView["status"]): string {
  const words: Readonly<Record<typeof status, string>> = {
    running: l10n.t("Running"),
    completed: l10n.t("Completed"),
    error: l10n.t("Failed"),
    cancelled: l10n.t("Cancelled"),
    resumed: l10n.t("Working on follow-up"),
    idle: l10n.t("Idle"),
  };
  return words[status];
}

export function phaseWord(l10n: L10n, phase: ActivityView["phase"]): string {
  const words: Readonly<Record<typeof phase, string>> = {
    queued: l10n.t("Queued"),
    "setting-up": l10n.t("Setting up its worktree…"),
    starting: l10n.t("Starting…"),
    thinking: l10n.t("Thinking…"),
    streaming: l10n.t("Writing…"),
    tool: l10n.t("Working…"),
    retrying: l10n.t("Waiting to retry"),
    "needs-permission": l10n.t("Needs permission"),
    "needs-answer": l10n.t("Needs an answer"),
    stalled: l10n.t("Stalled"),
  };
  return words[phase];
}
