import { textOf } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { SilenceTimer } from "./silence-timer.ts";

/** The server sends a heartbeat every 10 s: two missed ones and a half mean that the stream is dead. */
const SILENCE_LIMIT_MS = 25_000;
/** The first event comes at once; a swallowed request is given up after this. */
const OPEN_TIMEOUT_MS = 10_000;
const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/**
 * Opens the server's event stream through the given `fetch`. Tells `onError` why, if the stream fails to open or
 * breaks; a clean end just ends it.
 */
export type Subscribe = (
  fetch: (request: Request) => Promise<Response>,
  onError: (error: unknown) => void,
) => Promise<AsyncIterable<unknown>>;

export interface StreamCut {
  /** A sentence for people. */
  readonly reason: Text;
  /** What `ready` or `subscribe`, or its `fetch`, failed with. */
  readonly error?: unknown;
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly nextAttemptAt: number;
}

export interface EventStreamOptions {
  /** Resolves when the stream can be asked for, however long that takes; ends with the signal. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  readonly subscribe: Subscribe;
  readonly clock: Clock;
  /** The stream is open (again): its first event came. Whatever happened while it was not is lost. */
  readonly onOpen: () => void;
  readonly onPayload: (payload: unknown) => void;
  /** The stream broke, or did not open. */
  readonly onCut: (cut: StreamCut) => void;
  /** Between 0 and 1; spreads the attempts of several windows. */
  readonly random?: () => number;
}

/** One attempt at the stream, from opening it until it ends. */
interface Attempt {
  readonly abort: AbortController;
  /** Why it ended, once somebody knows better than the stream itself. */
  reason?: Text;
  /** The next one follows without a pause. */
  reopen?: true;
}

/** The server's event stream, reopened whenever it breaks or falls silent, until disposed. */
export class EventStream implements Disposable {
  private disposed = false;
  private current: Attempt | undefined;
  private failedAttempts = 0;
  private wake: (() => void) | undefined;
  private readonly silence: SilenceTimer;

  constructor(private readonly options: EventStreamOptions) {
    this.silence = new SilenceTimer(options.clock, SILENCE_LIMIT_MS, () =>
      this.cut(sentence("The event stream was silent for {0} s.", SILENCE_LIMIT_MS / 1000)),
    );
    void this.run();
  }

  /** Whether silence is watched for: it costs a timer, so only while somebody relies on the events. */
  setWatched(watched: boolean): void {
    this.silence.setWatched(watched);
  }

  /** Opens the stream anew, at once. */
  reopen(reason: Text): void {
    this.failedAttempts = 0;
    if (this.current) this.current.reopen = true;
    this.cut(reason);
    this.wake?.();
  }

  /** Ends the stream, or the attempt at it; the next one follows. */
  cut(reason: Text): void {
    if (!this.current) return;
    this.current.reason ??= reason;
    this.current.abort.abort();
  }

  /** Ends a pause: the next attempt follows at once. */
  hurry(): void {
    if (!this.wake) return;
    this.failedAttempts = 0;
    this.wake();
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.silence.dispose();
    this.current?.abort.abort();
    this.wake?.();
  }

  private async run(): Promise<void> {
    const { clock, onCut, random = Math.random } = this.options;
    while (!this.disposed) {
      const attempt: Attempt = { abort: new AbortController() };
      this.current = attempt;
      const { error, openFor } = await this.follow(attempt);
      this.current = undefined;
      if (this.disposed) return;
      if (attempt.reopen) continue;
      // A stream that opens only to break again is not well: the pauses between its attempts grow as well.
      if (openFor > MAX_DELAY_MS) this.failedAttempts = 0;
      const delay = retryDelay(this.failedAttempts++, random());
      const paused = this.pause(delay);
      onCut({
        reason: attempt.reason ?? describe(error),
        error,
        attempt: this.failedAttempts,
        nextAttemptAt: clock.now() + delay,
      });
      await paused;
    }
  }

  /** Resolves when the stream has ended, however that came about. */
  private async follow(attempt: Attempt): Promise<{ error: unknown; openFor: number }> {
    const { clock, ready, subscribe, onOpen, onPayload } = this.options;
    const { signal } = attempt.abort;
    let openedAt: number | undefined;
    let error: unknown;
    let deadline: Disposable | undefined;
    try {
      await ready(signal);
      deadline = clock.after(OPEN_TIMEOUT_MS, () =>
        this.cut(sentence("OpenCode did not open its event stream.")),
      );
      const payloads = await subscribe(
        (request) => this.fetch(request, signal),
        (cause) => (error = cause),
      );
      for await (const payload of payloads) {
        if (signal.aborted) break;
        if (openedAt === undefined) {
          openedAt = clock.now();
          deadline.dispose();
          onOpen();
        }
        onPayload(payload);
      }
    } catch (cause) {
      error = cause;
    } finally {
      deadline?.dispose();
      this.silence.stop();
      attempt.abort.abort();
    }
    return { error, openFor: openedAt === undefined ? 0 : clock.now() - openedAt };
  }

  /** Notes every byte: heartbeats and half events are signs of life too, and the SDK's reader drops them. */
  private async fetch(request: Request, signal: AbortSignal): Promise<Response> {
    const response = await fetch(request, { signal });
    if (!response.body) return response;
    this.silence.start();
    const noted = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          this.silence.touch();
          controller.enqueue(bytes);
        },
      }),
    );
    const { status, statusText, headers } = response;
    return new Response(noted, { status, statusText, headers });
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

/** Doubles from half a second to ten, give or take a quarter. */
function retryDelay(failures: number, random: number): number {
  const middle = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures);
  return Math.round(Math.min(MAX_DELAY_MS, Math.max(MIN_DELAY_MS, middle * (0.75 + random / 2))));
}

function describe(error: unknown): Text {
  if (!(error instanceof Error)) return sentence("The event stream ended.");
  return error.message.endsWith(".")
    ? textOf(error)
    : sentence("The event stream broke ({0}).", error.message);
}
