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

/**
 * What `run` resolves to, or a rejection with a `TimeoutError` after so many milliseconds, or with the outer signal's reason.
 * The timer holds all that it needs: an `AbortSignal.timeout`, and a signal by `AbortSignal.any`, is collected as garbage
 * together with a request that nothing else refers to, and then never fires.
 */
export async function limited<T>(
  ms: number,
  run: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new DOMException(`No answer in ${ms} ms.`, "TimeoutError")), ms);
  const end = () => abort.abort(outer?.reason);
  outer?.addEventListener("abort", end);
  if (outer?.aborted) end();
  try {
    return await orElse(run(abort.signal), abort.signal, () => abort.signal.reason as Error);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", end);
  }
}
