import type { OverviewTask } from "../../protocol/overview.ts";
import type { IconName } from "../icons.ts";
import { type L10n, phaseWord, statusWord } from "../l10n.ts";
import type { Interval, LaneState } from "./layout.ts";

export const STATE_ICONS: Readonly<Record<LaneState, IconName>> = {
  waiting: "question",
  queued: "pending",
  working: "running",
  completed: "completed",
  error: "error",
  cancelled: "cancelled",
  idle: "idle",
};

/** What a task is doing, or how it ended. */
export function stateWord(l10n: L10n, { status, phase }: OverviewTask): string {
  switch (phase) {
    case "queued":
    case "needs-permission":
    case "needs-answer":
    case "retrying":
    case "stalled":
      return phaseWord(l10n, phase);
    default:
      return statusWord(l10n, status);
  }
}

/** The number of tasks in a state: `2 need you`. */
export function countWord(l10n: L10n, state: LaneState, count: string, isOne: boolean): string {
  switch (state) {
    case "waiting":
      return isOne ? l10n.t("1 needs you") : l10n.t("{0} need you", count);
    case "queued":
      return l10n.t("{0} queued", count);
    case "working":
      return l10n.t("{0} running", count);
    case "completed":
      return l10n.t("{0} completed", count);
    case "error":
      return l10n.t("{0} failed", count);
    case "cancelled":
      return l10n.t("{0} cancelled", count);
    case "idle":
      return l10n.t("{0} idle", count);
  }
}

/** A part of a task's time in words, such as `Queued 10:02 – 10:05`. */
export function intervalWords(l10n: L10n, { kind, to }: Interval, times: readonly [string, string]): string {
  const [start, end] = times;
  switch (kind) {
    case "earlier":
      return l10n.t("Earlier turns, at unknown times: {0} – {1}", start, end);
    case "queued":
      return to === undefined ? l10n.t("Queued since {0}", start) : l10n.t("Queued: {0} – {1}", start, end);
    case "waiting":
      return to === undefined
        ? l10n.t("Waiting for you since {0}", start)
        : l10n.t("Waited for you: {0} – {1}", start, end);
    case "working":
      return to === undefined ? l10n.t("Running since {0}", start) : l10n.t("Ran: {0} – {1}", start, end);
  }
}
