import type { SessionStatusData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { unlessCancelled } from "./cancel.ts";
import type { ServerClient } from "./client.ts";
import { failures } from "./failures.ts";

/** A folder is loaded well within this unless its plugins have to be prepared, or the server lost the question. */
const PATIENCE_MS = 2_000;

export interface LoadingOptions {
  readonly clock: Clock;
  /** Milliseconds after which the wait is given up. */
  readonly withinMs: number;
  /** Gives the wait up at once. */
  readonly signal: AbortSignal;
  /** It takes longer than it usually does. */
  readonly onSlow: () => void;
}

/**
 * Resolves once the server answers for the client's folder. A server that is well may still keep every such call
 * waiting until it has installed what the folder's plugins need. A refusal is an answer, and a server that went away is
 * not waited for: the next call meets the same and says why. Rejects with a `ConnectionError` if it takes too long.
 */
export async function folderLoaded(
  client: ServerClient,
  { clock, withinMs, signal, onSlow }: LoadingOptions,
): Promise<void> {
  const over = new AbortController();
  const timers: Disposable[] = [];
  const answered = new Promise<void>((resolve, reject) => {
    // No question is cheaper: the server looks up what it has in memory.
    const route = { url: "/session/status" } satisfies SessionStatusData;
    const ask = () => {
      client.request("GET", route, over.signal).then(
        () => resolve(),
        () => resolve(),
      );
    };
    const askAgain = () => {
      onSlow();
      // A request sent as the server opens its port can hang for ever. The first one stays: it may be the one answered.
      ask();
    };
    timers.push(
      clock.after(PATIENCE_MS, askAgain),
      clock.after(withinMs, () => reject(new ConnectionError(failures.loadTimeout(withinMs)))),
    );
    ask();
  });
  try {
    await unlessCancelled(answered, signal);
  } finally {
    for (const timer of timers) timer.dispose();
    over.abort();
  }
}
