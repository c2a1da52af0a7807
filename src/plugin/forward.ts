import { realpath } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { MAX_CALL_BYTES, TOOL_CALL_PATH, type ToolAnswer, type ToolCall } from "../bridge/tool-call.ts";
import { readLivingEntries, type EndpointEntry } from "../bridge/endpoint-entries.ts";
import { callEndpoint, type Outcome } from "./call-endpoint.ts";
import { askEach, folderEndpoints, isReachable } from "./folder-endpoints.ts";
import { reopenFolder } from "./reopen-folder.ts";

/** How often to look for endpoints, in milliseconds. */
const LOOK_AGAIN_MS = 250;

/** How often a call has its folder opened again: it may be what ends the daemon. */
const MAX_REOPENINGS = 3;

/** Statuses that an endpoint would return again. After others, another endpoint may succeed. */
const FINAL_STATUSES: readonly number[] = [400, 413];

/** How long to look for an endpoint, in milliseconds, not counting the time in which an endpoint holds the call. */
export interface Patience {
  /** While no endpoint has accepted the call: VS Code may be about to open the folder. */
  readonly untakenMs: number;
  /** After an endpoint accepted the call and went away: the daemon may be restarting. */
  readonly takenMs: number;
}

export interface Forwarding {
  readonly stateFolder: string;
  /** The session's folder. */
  readonly directory: string;
  /** The OpenCode server that makes the call. */
  readonly server: URL;
  readonly patience: Patience;
  readonly signal: AbortSignal;
  /** Whether to start the daemon if none is running, and have it open the folder if no window has. */
  readonly reopens: boolean;
}

/**
 * Has a call carried out by the daemon that serves the folder. If the daemon goes away before it replies, the call is
 * repeated with the same ID, so that nothing is done twice. Rejects with one sentence for the model, or when `signal`
 * aborts.
 */
export async function forward(
  call: ToolCall,
  { stateFolder, directory, server, patience, signal, reopens }: Forwarding,
): Promise<ToolAnswer> {
  if (!isReachable(server)) throw new Error(NO_SERVER);
  if (Buffer.byteLength(JSON.stringify(call)) > MAX_CALL_BYTES) throw new Error(TOO_LARGE);
  const origin = { directory: await realpath(directory).catch(() => directory), server };
  const madeAt = performance.now();
  const waitedMs = (): number => Math.round(performance.now() - madeAt);
  let heldMs = 0;
  const ask = async (endpoint: EndpointEntry, onlyIfOurs: boolean): Promise<Outcome> => {
    const outcome = await callEndpoint(
      endpoint,
      { path: TOOL_CALL_PATH, body: JSON.stringify({ ...call, onlyIfOurs, waitedMs: waitedMs() }) },
      signal,
    );
    if (outcome.kind === "broken") heldMs += outcome.heldMs;
    return outcome;
  };
  let reopening: "under-way" | { readonly problem: string } | undefined;
  let reopenings = 0;
  const reopen = (): void => {
    reopening = "under-way";
    reopenings++;
    const sinceMs = waitedMs();
    void reopenFolder(stateFolder, origin.directory, { onlyIfUsed: false })
      .then(
        () => "",
        (error: Error) => error.message,
      )
      .then((problem) => {
        reopening = { problem };
        heldMs += waitedMs() - sinceMs;
      });
  };
  let taken = false;
  for (;;) {
    const { serving, elsewhere } = folderEndpoints(await readLivingEntries(stateFolder), origin);
    const outcome = await askEach(serving, origin.directory, ask);
    if (outcome.kind === "reply") return outcome.reply;
    if (outcome.kind === "rejected" && FINAL_STATUSES.includes(outcome.status))
      throw new Error(rejected(outcome.status));
    if (outcome.kind === "broken") {
      taken = true;
      // The daemon that opened the folder may have gone, too.
      if (reopening !== "under-way" && reopenings < MAX_REOPENINGS) reopening = undefined;
    }
    const isOver = waitedMs() - heldMs >= (taken ? patience.takenMs : patience.untakenMs);
    if (isOver && reopening !== "under-way") {
      if (outcome.kind === "unreachable") throw new Error(UNRESPONSIVE);
      if (taken) throw new Error(lost(reopening?.problem));
      if (outcome.kind === "rejected") throw new Error(rejected(outcome.status));
      throw new Error(
        elsewhere.length > 0 ? servedElsewhere(server) : notServed(directory, reopening?.problem),
      );
    }
    const isServed = outcome.kind !== "not-ours" || elsewhere.length > 0;
    if (reopens && reopening === undefined && !isServed) reopen();
    await delay(LOOK_AGAIN_MS, undefined, { signal });
  }
}

const NO_SERVER =
  "This OpenCode has no server that Async Agents could be connected to; start it as `opencode serve` or with `opencode --port N`, and connect the Async Agents extension in VS Code to it.";

const TOO_LARGE = `The input is too large (over ${MAX_CALL_BYTES / 1_000_000} MB); shorten the prompt.`;

const VERSIONS_DIFFER =
  "The Async Agents extension in VS Code and its plugin in OpenCode are of versions that do not fit together; reload the VS Code window and restart the OpenCode server.";

const UNRESPONSIVE =
  "The background process of Async Agents did not respond, and may still carry out the call; before you repeat it, see with asyncagents_list what was done.";

function rejected(status: number): string {
  if (status === 400) return VERSIONS_DIFFER;
  if (status === 413) return TOO_LARGE;
  return `The background process of Async Agents did not accept the call (HTTP status ${status}); try again later.`;
}

function servedElsewhere({ origin }: URL): string {
  return `Async Agents works on this folder, but is connected to another OpenCode server; background agents need it to be connected to this one (${origin}).`;
}

function lost(problem = ""): string {
  return `${problem && `${problem} `}Async Agents stopped serving this folder before it replied, and hasn't come back: its background process has ended, or the user disconnected it or turned off the agent tools. Once it is connected in VS Code again, see with asyncagents_list what was done.`;
}

function notServed(directory: string, problem = ""): string {
  return `${problem && `${problem} `}Background agents need Async Agents to be connected in this folder, with the agent tools switched on; open ${directory} in VS Code and try again.`;
}
