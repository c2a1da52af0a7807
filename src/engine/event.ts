/** A subscription or an owned resource. Calling `dispose` repeatedly has no further effect. */
export interface Disposable {
  dispose(): void;
}

/** A source of events. Has the shape of `vscode.Event`, so that both are interchangeable. */
export type Event<T> = (listener: (value: T) => unknown) => Disposable;

/** The promise's outcome, or a rejection with `reason()` as soon as the signal aborts. */
export async function unlessCancelled<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  reason: () => Error,
): Promise<T> {
  if (!signal) return promise;
  let stop!: () => void;
  const stopped = new Promise<never>((_, reject) => (stop = () => reject(reason())));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([promise, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Receives the errors thrown by listeners, so that one bad listener does not stop the others. */
export type OnListenerError = (error: unknown) => void;

/** Logs the errors of an emitter's listeners. `source` names what they listen to. */
export function logged(
  logger: { error(message: string, error: unknown): void },
  source: string,
): OnListenerError {
  return (error) => logger.error(`A listener to ${source} failed.`, error);
}

/** The private end of an {@link Event}. */
export class Emitter<T> implements Disposable {
  /** Never changed, but replaced, because listeners may come and go while an event is fired. */
  private listeners: readonly ((value: T) => unknown)[] = [];

  constructor(private readonly onListenerError: OnListenerError) {}

  readonly event: Event<T> = (listener) => {
    const own = (value: T): unknown => listener(value);
    this.listeners = [...this.listeners, own];
    return { dispose: () => void (this.listeners = this.listeners.filter((each) => each !== own)) };
  };

  /** The number of current listeners. */
  get size(): number {
    return this.listeners.length;
  }

  fire(value: T): void {
    for (const listener of this.listeners) {
      try {
        listener(value);
      } catch (error) {
        this.onListenerError(error);
      }
    }
  }

  dispose(): void {
    this.listeners = [];
  }
}
