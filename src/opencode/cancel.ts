import { unlessCancelled as orElse, type CancelSignal } from "../engine/event.ts";

/** What a call rejects with whose caller took it back. */
export function cancelled(): DOMException {
  return new DOMException("Connecting was cancelled.", "AbortError");
}

export function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The promise's outcome, or a rejection with `cancelled()` as soon as the signal says so. */
export function unlessCancelled<T>(promise: Promise<T>, signal: CancelSignal | undefined): Promise<T> {
  return orElse(promise, signal, cancelled);
}
