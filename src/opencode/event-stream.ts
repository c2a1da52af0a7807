import { once } from "node:events";
import { textOf } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { Follower, Following } from "./server-events.ts";

const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

interface StreamCut {
  /** A sentence for users. */
  readonly reason: Text;
  /** The error of `follow` or of the stream. */
  readonly error?: unknown;
  /** The number of successive cuts. */
  readonly cuts: number;
}

export interface EventStreamOptions {
  /** Opens the stream once the server is ready, however long that takes. Ends when the signal aborts. */
  readonly follow: (follower: Follower, signal: AbortSignal) => Promise<Following>;
  readonly clock: Clock;
  /** Events arrive (again). Those sent in the meantime are lost. */
  readonly onOpen: () => void;
  readonly onPayload: Follower["onPayload"];
  /** The stream broke, or could not be opened. */
  readonly onCut: (cut: StreamCut) => void;
  /** Returns numbers between 0 and 1, which spread the attempts of several connections. */
  readonly random?: () => number;
}

/** One connection to the stream, from opening it until it ends. */
interface Attempt {
  readonly abort: AbortController;
  openedAt?: number;
  error?: unknown;
  /** Set if the next attempt follows without a delay. */
  reopening?: { readonly cutReason: Text | undefined };
}

/** The events of one folder. Reopens the stream whenever it breaks or falls silent, until disposed. */
export class EventStream implements Disposable {
  private disposed = false;
  private current: Attempt | undefined;
  private cuts = 0;
  private wake: (() => void) | undefined;
  private following: Following | undefined;
  private watched = false;

  constructor(private readonly options: EventStreamOptions) {
    void this.run();
  }

  /** See {@link Following.setWatched}. */
  setWatched(watched: boolean): void {
    this.watched = watched;
    this.following?.setWatched(watched);
  }

  /** Reopens the stream immediately. If a reason is given, reports it as the cause of the cut. */
  reopen(cutReason?: Text): void {
    this.cuts = 0;
    if (this.current) this.current.reopening ??= { cutReason };
    this.current?.abort.abort();
    this.wake?.();
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.current?.abort.abort();
    this.wake?.();
  }

  private async run(): Promise<void> {
    const { clock, onCut, random = Math.random } = this.options;
    while (!this.disposed) {
      const attempt: Attempt = { abort: new AbortController() };
      this.current = attempt;
      await this.follow(attempt);
      this.current = undefined;
      if (this.disposed) return;
      const { reopening, openedAt, error } = attempt;
      if (reopening && reopening.cutReason === undefined) continue;
      // Delays also grow for a stream that opens but soon breaks again.
      if (clock.now() - (openedAt ?? Infinity) > MAX_DELAY_MS) this.cuts = 0;
      const paused = reopening ? undefined : this.pause(retryDelay(this.cuts, random()));
      onCut({ reason: reopening?.cutReason ?? describe(error), error, cuts: ++this.cuts });
      await paused;
    }
  }

  /** Resolves when the stream has ended for any reason. */
  private async follow(attempt: Attempt): Promise<void> {
    const { clock, follow, onOpen, onPayload } = this.options;
    const { abort } = attempt;
    const { signal } = abort;
    const follower: Follower = {
      onOpen: () => {
        attempt.openedAt = clock.now();
        onOpen();
      },
      onPayload: (payload, directory) => {
        if (!signal.aborted) onPayload(payload, directory);
      },
      onEnd: (error) => {
        attempt.error = error;
        abort.abort();
      },
    };
    try {
      this.following = await follow(follower, signal);
      this.following.setWatched(this.watched);
      if (!signal.aborted) await once(signal, "abort");
    } catch (error) {
      attempt.error = error;
    } finally {
      this.following?.dispose();
      this.following = undefined;
      abort.abort();
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.options.clock.after(ms, () => this.wake?.());
      this.wake = () => {
        this.wake = undefined;
        timer.dispose();
        resolve();
      };
    });
  }
}

/** Doubles from half a second up to ten seconds, varied by a quarter. */
function retryDelay(failures: number, random: number): number {
  const middle = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures);
  return Math.round(Math.min(MAX_DELAY_MS, Math.max(MIN_DELAY_MS, middle * (0.75 + random / 2))));
}

function describe(error: unknown): Text {
  if (!(error instanceof Error)) return sentence("The event stream ended.");
  return error.message.endsWith(".")
    ? textOf(error)
    : sentence("The event stream failed ({0}).", error.message);
}
