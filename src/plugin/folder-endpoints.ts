import type { EndpointEntry } from "../bridge/endpoint-entries.ts";
import type { Outcome } from "./call-endpoint.ts";

/** The origin of a call. */
export interface Origin {
  /** The real path of the session's folder. */
  readonly directory: string;
  /** The OpenCode server that makes the call. */
  readonly server: URL;
}

/** The endpoints that serve a folder. */
export interface FolderEndpoints {
  /**
   * The endpoints connected to the server that makes the call. Those of the folder itself come before those of folders
   * that it is a worktree of, and the newest first.
   */
  readonly serving: readonly EndpointEntry[];
  /** The endpoints connected to other servers. */
  readonly elsewhere: readonly EndpointEntry[];
}

/** The address that OpenCode reports if it has no server, as when started by `opencode` alone. */
const NO_SERVER = "http://localhost:4096/";

/**
 * Whether an endpoint can serve this server. A server on port 4096 of `localhost` or on IPv6 reports the same address
 * as no server. Treating it as none causes a clear refusal; the opposite could send calls to an unrelated endpoint.
 */
export function isReachable(server: URL): boolean {
  return server.href !== NO_SERVER;
}

export function folderEndpoints(
  entries: readonly EndpointEntry[],
  { directory, server }: Origin,
): FolderEndpoints {
  const address = addressOf(server);
  const open = entries
    .filter(({ directories }) => directories.includes(directory))
    .toSorted(
      (one, other) =>
        Number(isOn(other, directory)) - Number(isOn(one, directory)) || other.openedAt - one.openedAt,
    );
  const serves = (entry: EndpointEntry): boolean => addressOf(parseUrl(entry.server)) === address;
  return { serving: open.filter(serves), elsewhere: open.filter((entry) => !serves(entry)) };
}

/**
 * Asks the endpoints of a folder in order until that of the session replies. If none does, returns the most informative
 * outcome: `not-ours` if all say that it belongs to another folder, or if there are none.
 */
export async function askEach(
  endpoints: readonly EndpointEntry[],
  directory: string,
  ask: (endpoint: EndpointEntry, onlyIfOurs: boolean) => Promise<Outcome>,
): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const endpoint of endpoints) {
    const outcome = await ask(endpoint, true);
    if (outcome.kind === "reply") return outcome;
    outcomes.push(outcome);
  }
  const first = (kind: Outcome["kind"]): Outcome | undefined => outcomes.find((one) => one.kind === kind);
  const none = first("broken") ?? first("rejected") ?? first("unreachable");
  if (none) return none;
  // What OpenCode runs in the folder and no other folder claims belongs there, even if its session is of a subfolder.
  const own = endpoints.find((endpoint) => isOn(endpoint, directory));
  return own ? ask(own, false) : { kind: "not-ours" };
}

/** Whether an endpoint serves this folder itself, and not a folder that it is a worktree of. */
function isOn({ directories }: EndpointEntry, directory: string): boolean {
  return directories[0] === directory;
}

/** The names under which a server on this machine is reported or reached. */
const LOOPBACK_NAMES: readonly string[] = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"];

/** A text that is equal for all addresses of one server. */
function addressOf(url: URL | undefined): string | undefined {
  if (!url) return undefined;
  const host = LOOPBACK_NAMES.includes(url.hostname) ? "localhost" : url.hostname;
  return `${host}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
