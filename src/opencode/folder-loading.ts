import type { PathGetData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { unlessCancelled } from "./cancel.ts";
import type { ServerAnswer, ServerClient } from "./client.ts";
import { failures } from "./failures.ts";
import { folderPath } from "./schemas.ts";
import { describeServerError } from "./server-error.ts";
import { parse } from "./validation.ts";

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
 * Resolves to the client's folder as the server writes it, once the server answers for it. A server that is well may still
 * keep every such call waiting until it has installed what the folder's plugins need. Rejects with a `ConnectionError` if
 * it takes too long, the server refuses (a configuration that it cannot read) or went away.
 */
export async function loadFolder(
  client: ServerClient,
  { clock, withinMs, signal, onSlow }: LoadingOptions,
): Promise<string> {
  const over = new AbortController();
  const timers: Disposable[] = [];
  const answered = new Promise<string>((resolve, reject) => {
    // No question is cheaper: the server looks up what it has in memory.
    const route = { url: "/path" } satisfies PathGetData;
    const ask = () => {
      client.request("GET", route, over.signal).then(directoryOf).then(resolve, reject);
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
    return await unlessCancelled(answered, signal);
  } finally {
    for (const timer of timers) timer.dispose();
    over.abort();
  }
}

function directoryOf({ response, error, data }: ServerAnswer): string {
  if (!response) throw new ConnectionError(failures.lost());
  if (!response.ok) throw new ConnectionError(failures.refusesFolder(describeServerError(error)));
  return parse(folderPath, data).directory;
}
