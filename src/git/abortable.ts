import type { CancelSignal } from "../engine/event.ts";

/** Runs a job with a signal of the kind that Node's own functions take. */
export async function abortable<T>(
  signal: CancelSignal,
  job: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const cancel = (): void => abort.abort();
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  try {
    return await job(abort.signal);
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
