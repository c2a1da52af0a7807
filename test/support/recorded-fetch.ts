import type { Disposable } from "../../src/engine/event.ts";

/** A request of this process; times in milliseconds, as given by `performance.now()`. */
export interface RecordedRequest {
  /** `GET /session/ses_1` */
  readonly call: string;
  readonly start: number;
  /** When the response headers arrived; undefined until then. */
  end?: number;
}

/** Records all requests of this process until disposed. */
export function recordFetch(): Disposable & { readonly requests: readonly RecordedRequest[] } {
  const real = globalThis.fetch;
  const requests: RecordedRequest[] = [];
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const recorded: RecordedRequest = {
      call: `${request.method} ${new URL(request.url).pathname}`,
      start: performance.now(),
    };
    requests.push(recorded);
    try {
      return await real(request);
    } finally {
      recorded.end = performance.now();
    }
  };
  return { requests, dispose: () => void (globalThis.fetch = real) };
}

/** The milliseconds between two times during which no request was waiting for its answer. */
export function timeWithoutRequests(
  requests: readonly RecordedRequest[],
  from: number,
  until: number,
): number {
  let own = 0;
  let at = from;
  for (const { start, end = until } of [...requests].sort((a, b) => a.start - b.start)) {
    if (end <= at || start >= until) continue;
    own += Math.max(0, start - at);
    at = Math.max(at, end);
  }
  return own + Math.max(0, until - at);
}
