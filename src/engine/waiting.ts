import { invalidArgument, Refusal } from "./errors.ts";
import type { Disposable, Event } from "./event.ts";
import type { Clock, WorktreeChanges } from "./ports.ts";
import type { TaskChange } from "./registry.ts";
import { sentence } from "./sentence.ts";
import { isActive, type Task } from "./task.ts";

export interface WaitOptions {
  /** Whether to wait until all tasks have ended, or any of them. */
  readonly mode?: "all" | "any" | undefined;
  /** How long to wait at most, in milliseconds. Undefined means no limit. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A source of tasks and their changes. */
export interface TaskSource {
  get(id: string): Task | undefined;
  readonly onDidChange: Event<TaskChange>;
}

/**
 * Resolves when the tasks have ended or the timeout has passed. A task that is gone counts as ended. Rejects
 * immediately when the caller cancels.
 */
export function waitForEnd(
  source: TaskSource,
  clock: Clock,
  ids: readonly string[],
  { mode = "all", timeoutMs, signal }: WaitOptions,
): Promise<void> {
  const hasEnded = (id: string): boolean => {
    const task = source.get(id);
    return !task || !isActive(task);
  };
  const isOver = (): boolean =>
    mode === "all" ? ids.every(hasEnded) : ids.length === 0 || ids.some(hasEnded);

  return new Promise((resolve, reject) => {
    const held: Disposable[] = [];
    const end = (outcome: () => void): void => {
      for (const each of held) each.dispose();
      outcome();
    };
    const cancel = (): void =>
      end(() =>
        reject(new Refusal("cancelled-by-caller", sentence("Waiting was cancelled. The tasks continue."))),
      );
    if (signal?.aborted) return cancel();
    if (isOver() || timeoutMs === 0) return resolve();

    held.push(source.onDidChange(({ id }) => void (ids.includes(id) && isOver() && end(resolve))));
    if (timeoutMs !== undefined) held.push(clock.after(timeoutMs, () => end(resolve)));
    if (signal) {
      signal.addEventListener("abort", cancel);
      held.push({ dispose: () => signal.removeEventListener("abort", cancel) });
    }
  });
}

/** The default and maximum time that a blocking output waits, in seconds. */
const DEFAULT_BLOCKING_SECONDS = 30;
const LONGEST_BLOCKING_SECONDS = 600;

export interface OutputOptions {
  /** Whether to wait until the task has ended. */
  readonly block?: boolean | undefined;
  /** How long a blocking output waits, in seconds: 30 by default, at most 600. Ignored without `block`. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How long a blocking output waits, in milliseconds. */
export function blockingTime(seconds = DEFAULT_BLOCKING_SECONDS): number {
  if (Number.isNaN(seconds) || seconds < 0)
    throw invalidArgument(sentence("The timeout must be a number of seconds from 0 to 600."));
  return Math.min(seconds, LONGEST_BLOCKING_SECONDS) * 1000;
}

/** The maximum time of a timer, in milliseconds: about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A waiting time within the maximum of timers, in milliseconds. Undefined means no limit. */
export function waitingTime(ms: number | undefined): number | undefined {
  if (ms === undefined || ms === Infinity) return undefined;
  if (Number.isNaN(ms) || ms < 0)
    throw invalidArgument(sentence("The timeout must be a number of milliseconds, 0 or more."));
  return Math.min(ms, LONGEST_TIMER_MS);
}

/** The state and result of a task. */
export interface TaskOutput {
  readonly task: Task;
  /** The full last answer. Undefined before the first one and if it was deleted, empty if the model wrote none. */
  readonly result?: string | undefined;
  /** What an isolated task has changed in its worktree. Only set once it has ended, and if that is known. */
  readonly changes?: WorktreeChanges | undefined;
}
