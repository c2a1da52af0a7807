import { unlessCancelled } from "../engine/event.ts";

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
    return await unlessCancelled(run(abort.signal), abort.signal, () => abort.signal.reason as Error);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", end);
  }
}
