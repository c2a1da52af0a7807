import type { EndpointEntry } from "../bridge/endpoint-entries.ts";

/** Where a call comes from. */
export interface Origin {
  /** The real path of the session's folder. */
  readonly directory: string;
  /** The OpenCode server. */
  readonly server: URL;
}

/** The endpoints that serve a folder. */
export interface FolderEndpoints {
  /** Those connected to the server that the call comes from, the newest first. */
  readonly serving: readonly EndpointEntry[];
  /** Those connected to another one. */
  readonly elsewhere: readonly EndpointEntry[];
}

/** What OpenCode reports where it listens on nothing, as started by `opencode` alone. */
const NO_SERVER = "http://localhost:4096/";

/**
 * Whether an endpoint could serve the server. One that listens on port 4096 by the name `localhost`, or on IPv6,
 * reports the same as none; taking it for none costs a clear refusal, the reverse would bring calls to a stranger's endpoint.
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
    .toSorted((one, other) => other.openedAt - one.openedAt);
  const serves = (entry: EndpointEntry): boolean => addressOf(parseUrl(entry.server)) === address;
  return { serving: open.filter(serves), elsewhere: open.filter((entry) => !serves(entry)) };
}

/** The names by which a server on this machine is reported or reached. */
const LOOPBACK_NAMES: readonly string[] = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"];

/** The same for all addresses of one server. */
function addressOf(url: URL | undefined): string | undefined {
  if (!url) return undefined;
  const host = LOOPBACK_NAMES.includes(url.hostname) ? "localhost" : url.hostname;
  return `${host}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
