import type { EndpointEntry } from "../bridge/endpoint-entries.ts";

/** The origin of a call. */
export interface Origin {
  /** The real path of the session's folder. */
  readonly directory: string;
  /** The OpenCode server that makes the call. */
  readonly server: URL;
}

/** The endpoints that serve a folder. */
export interface FolderEndpoints {
  /** The endpoints connected to the server that makes the call, the newest first. */
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
    .toSorted((one, other) => other.openedAt - one.openedAt);
  const serves = (entry: EndpointEntry): boolean => addressOf(parseUrl(entry.server)) === address;
  return { serving: open.filter(serves), elsewhere: open.filter((entry) => !serves(entry)) };
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
