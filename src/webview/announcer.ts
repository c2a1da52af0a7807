import type { TaskView } from "../protocol/output.ts";
import { h } from "./dom.ts";
import { phaseWord, statusWord, type L10n } from "./l10n.ts";

/** Phases in which the task waits for something. */
const ANNOUNCED_PHASES: ReadonlySet<string> = new Set([
  "needs-permission",
  "needs-answer",
  "retrying",
  "stalled",
  "queued",
  "setting-up",
]);

/** Tells screen readers what changes. */
export class Announcer {
  readonly element = h("div", { class: "sr-only", role: "status", "aria-live": "polite" });
  /** What was said last of the task. Other announcements in between don't make it new. */
  private state = "";

  constructor(private readonly l10n: L10n) {}

  say(text: string): void {
    if (this.element.textContent !== text) this.repeat(text);
  }

  /** Says it even if it is what was said last. */
  repeat(text: string): void {
    this.element.textContent = text;
  }

  sayState({ activity, status }: TaskView): void {
    const text =
      activity && ANNOUNCED_PHASES.has(activity.phase)
        ? phaseWord(this.l10n, activity.phase)
        : statusWord(this.l10n, status);
    if (text === this.state) return;
    this.state = text;
    this.say(text);
  }
}
