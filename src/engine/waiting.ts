import { Refusal } from "./errors.ts";
import type { CancelSignal, Disposable, Event } from "./event.ts";
import type { Clock } from "./ports.ts";
import type { TaskChange } from "./registry.ts";
import { sentence } from "./sentence.ts";
import { isActive, type Task } from "./task.ts";

export interface WaitOptions {
  /** Come back when all have ended, or as soon as one has. */
  readonly mode?: "all" | "any" | undefined;
  /** Milliseconds after which to come back anyway; without it there is no limit. */
  readonly timeout?: number | undefined;
  readonly signal?: CancelSignal | undefined;
}

/** What tells of tasks as they change. */
export interface TaskSource {
  get(id: string): Task | undefined;
  readonly onDidChange: Event<TaskChange>;
}

/**
 * Resolves when the tasks have ended, or the time is up; woken by the change itself. A task that is gone has ended.
 * Rejects at once when the caller cancels.
 */
export function waitForEnd(
  source: TaskSource,
  clock: Clock,
  ids: readonly string[],
  { mode = "all", timeout, signal }: WaitOptions,
): Promise<void> {
  const hasEnded = (id: string): boolean => {
    const task = source.get(id);
    return !task || !isActive(task);
  };
  const isOver = (): boolean =>
    mode === "all" ? ids.every(hasEnded) : ids.length === 0 || ids.some(hasEnded);

  return new Promise((resolve, reject) => {
    const held: Disposable[] = [];
    const settle = (outcome: () => void): void => {
      for (const each of held) each.dispose();
      outcome();
    };
    const cancel = (): void =>
      settle(() =>
        reject(new Refusal("cancelled-by-caller", sentence("Waiting was cancelled. The tasks continue."))),
      );
    if (signal?.aborted) return cancel();
    if (isOver() || timeout === 0) return resolve();

    held.push(source.onDidChange(({ id }) => void (ids.includes(id) && isOver() && settle(resolve))));
    if (timeout !== undefined) held.push(clock.after(timeout, () => settle(resolve)));
    if (signal) {
      signal.addEventListener("abort", cancel);
      held.push({ dispose: () => signal.removeEventListener("abort", cancel) });
    }
  });
}

/** Seconds that a blocking output waits by default, and at the most. */
const DEFAULT_BLOCKING_SECONDS = 30;
const LONGEST_BLOCKING_SECONDS = 600;

export interface OutputOptions {
  /** Wait for the task to end first. */
  readonly block?: boolean | undefined;
  /** Seconds after which a blocking output comes back anyway: by default 30, at the most 600. Ignored without `block`. */
  readonly timeout?: number | undefined;
  readonly signal?: CancelSignal | undefined;
}

/** How long a blocking output waits, in milliseconds. */
export function blockingTime(seconds = DEFAULT_BLOCKING_SECONDS): number {
  if (Number.isNaN(seconds) || seconds < 0)
    throw new Refusal("invalid-argument", sentence("The timeout must be a number of seconds from 0 to 600."));
  return Math.min(seconds, LONGEST_BLOCKING_SECONDS) * 1000;
}

/** Timers take no longer than this, in milliseconds: about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A time to wait that a timer can take, in milliseconds; undefined where there is no limit. */
export function waitingTime(ms: number | undefined): number | undefined {
  if (ms === undefined || ms === Infinity) return undefined;
  if (Number.isNaN(ms) || ms < 0)
    throw new Refusal(
      "invalid-argument",
      sentence("The timeout must be a number of milliseconds, 0 or more."),
    );
  return Math.min(ms, LONGEST_TIMER_MS);
}

/** What a task has to show. */
export interface TaskOutput {
  readonly task: Task;
  /** The full last answer; undefined before the first one, empty where the model wrote none. */
  readonly result?: string | undefined;
}
