import type { PathGetData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { unlessCancelled } from "./cancel.ts";
import type { ServerAnswer, ServerClient, ServerFolder } from "./client.ts";
import { failures } from "./failures.ts";
import { folderPath } from "./schemas.ts";
import { describeServerError } from "./server-error.ts";
import { parse } from "./validation.ts";

/** Loading a folder takes less, unless its plugins have to be installed or the server has lost the request. */
const PATIENCE_MS = 2_000;

export interface LoadingOptions {
  readonly clock: Clock;
  /** After how many milliseconds to give up. */
  readonly withinMs: number;
  /** Gives up immediately when aborted. */
  readonly signal: AbortSignal;
  /** Called when loading takes longer than usual. */
  readonly onSlow: () => void;
}

/**
 * Resolves to the client's folder, as the server describes it, once the server has loaded it. Even a healthy server delays
 * the response until the folder's plugins are installed. Rejects with a `ConnectionError` if that takes too long, or if
 * the server refuses (such as for an invalid configuration) or has ended.
 */
export async function loadFolder(
  client: ServerClient,
  { clock, withinMs, signal, onSlow }: LoadingOptions,
): Promise<ServerFolder> {
  const over = new AbortController();
  const timers: Disposable[] = [];
  const answered = new Promise<ServerFolder>((resolve, reject) => {
    // The cheapest request: the server answers it from memory.
    const route = { url: "/path" } satisfies PathGetData;
    const ask = () => {
      client.request("GET", route, over.signal).then(folderOf).then(resolve, reject);
    };
    const askAgain = () => {
      onSlow();
      // A request sent while the server opens its port can hang forever. The first one is kept: it may be answered.
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

function folderOf({ response, error, data }: ServerAnswer): ServerFolder {
  if (!response) throw new ConnectionError(failures.lost());
  if (!response.ok) {
    const describe = response.status < 500 ? failures.refusesFolder : failures.failsInFolder;
    throw new ConnectionError(describe(describeServerError(error)));
  }
  const { directory, worktree = "/" } = parse(folderPath, data);
  return { directory, isInRepository: worktree !== "/" };
}
