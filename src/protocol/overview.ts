import type { Phase, Span } from "../engine/task.ts";
import type { ConnectionView, TaskView } from "./output.ts";

/** The data of the overview, and its messages from the extension. Times are milliseconds since 1970. */

/** A task or a subagent, as far as the overview shows it. */
export interface OverviewTask {
  readonly id: string;
  readonly parentID: string;
  readonly description: string;
  readonly status: TaskView["status"];
  /** Only while it is active. */
  readonly phase?: Phase | undefined;
  readonly createdAt: number;
  /** When the current or last turn began. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** Its earlier turns and waits, as far as they are known. */
  readonly spans?: readonly Span[] | undefined;
  /** Whether it had turns at unknown times before those. */
  readonly hasUnknownTurns: boolean;
  /** Milliseconds of work in the turns that have ended; 0 if it never started. */
  readonly worked?: number | undefined;
  /** Since when it has been waiting for the user. */
  readonly waitingSince?: number | undefined;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: number;
}

/** From the extension to the overview's page, which sends messages of the output panel. */
export type OverviewMessage =
  /** As for the output panel. */
  | { readonly type: "setup"; readonly translations: Readonly<Record<string, string>>; readonly now: number }
  /** What was active since `dayStart`, in no order. Replaces what was sent before. */
  | {
      readonly type: "tasks";
      readonly connection: ConnectionView;
      readonly dayStart: number;
      readonly tasks: readonly OverviewTask[];
    };
