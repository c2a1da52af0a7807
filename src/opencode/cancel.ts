import { unlessCancelled as orElse } from "../engine/event.ts";

/** The error of a call that its caller cancelled. */
export function cancelled(): DOMException {
  return new DOMException("Connecting was cancelled.", "AbortError");
}

export function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The promise's outcome, or a rejection with `cancelled()` as soon as the signal aborts. */
export function unlessCancelled<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return orElse(promise, signal, cancelled);
}

/**
 * The outcome of `run`, or a rejection with a `TimeoutError` after this many milliseconds, or with the outer signal's
 * reason. Does not use `AbortSignal.timeout` or `AbortSignal.any`: such a signal is garbage collected together with a
 * request that nothing else refers to, and then never fires. The timer here keeps everything it needs alive.
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
