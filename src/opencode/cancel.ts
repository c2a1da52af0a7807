import type { CancelSignal } from "../engine/event.ts";

/** What a call rejects with whose caller took it back. */
export function cancelled(): DOMException {
  return new DOMException("Connecting was cancelled.", "AbortError");
}

export function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The promise's outcome, or a rejection with `cancelled()` as soon as the signal says so. */
export async function unlessCancelled<T>(promise: Promise<T>, signal: CancelSignal | undefined): Promise<T> {
  if (!signal) return promise;
  let stop!: () => void;
  const stopped = new Promise<never>((_, reject) => (stop = () => reject(cancelled())));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([promise, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
