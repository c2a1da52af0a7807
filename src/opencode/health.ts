import type { ConnectionFailure } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";
import { authorizationHeader } from "./access.ts";
import { failures } from "./failures.ts";
import { health as healthSchema } from "./schemas.ts";
import { limited } from "./cancel.ts";
import { parse, ValidationError } from "./validation.ts";

/**
 * The release line that the extension was built and tested with. Earlier releases may lack required features: session
 * metadata (which holds the tasks), and starting a stored message by its ID.
 */
const MINIMUM_VERSION = "1.18.0";

/** A request sent while the server opens its port can hang forever, so probes are short and repeated. */
const PROBE_TIMEOUT_MS = 500;
const PROBE_PAUSE_MS = 100;

export type Health =
  | { readonly kind: "healthy"; readonly version: string }
  | { readonly kind: "no-answer" | "nobody-there" | "unauthorized" | "not-opencode" };

/** Probes once, with the password. `no-answer` may also mean that the server is busy. */
async function probe(access: ServerAccess, signal?: AbortSignal): Promise<Health> {
  try {
    return await limited(PROBE_TIMEOUT_MS, (limit) => ask(access, limit), signal);
  } catch (error) {
    if (error instanceof ValidationError || error instanceof SyntaxError) return { kind: "not-opencode" };
    return { kind: kindOf((error as { cause?: unknown }).cause) };
  }
}

async function ask(access: ServerAccess, signal: AbortSignal): Promise<Health> {
  const response = await fetch(`${access.url}/global/health`, {
    headers: authorizationHeader(access),
    redirect: "manual",
    signal,
  });
  if (response.status === 401) return { kind: "unauthorized" };
  if (response.status !== 200) return { kind: "not-opencode" };
  const { healthy, version } = parse(healthSchema, await response.json());
  return healthy ? { kind: "healthy", version } : { kind: "no-answer" };
}

/** Classifies an error of Node's HTTP client by its code. */
function kindOf(cause: unknown): "no-answer" | "nobody-there" | "not-opencode" {
  const code = (cause as { code?: unknown } | undefined)?.code;
  if (code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EADDRNOTAVAIL") return "nobody-there";
  // Something accepted the connection, but did not answer with HTTP.
  if (typeof code === "string" && code.startsWith("HPE_")) return "not-opencode";
  return "no-answer";
}

/** Probes until there is an answer, the connection is refused, or `withinMs` have passed. */
export async function awaitHealth(
  access: ServerAccess,
  withinMs: number,
  signal?: AbortSignal,
): Promise<Health> {
  const end = Date.now() + withinMs;
  for (;;) {
    const health = await probe(access, signal);
    if (health.kind !== "no-answer" || signal?.aborted || Date.now() >= end) return health;
    await new Promise((resolve) => setTimeout(resolve, PROBE_PAUSE_MS));
  }
}

/** Why a server with this health cannot be used. Undefined if it can. */
export function healthFailure(health: Health, url: string): ConnectionFailure | undefined {
  switch (health.kind) {
    case "healthy":
      return isOlder(health.version, MINIMUM_VERSION)
        ? failures.tooOld(health.version, MINIMUM_VERSION)
        : undefined;
    case "unauthorized":
      return failures.wrongPassword(url);
    case "not-opencode":
      return failures.notOpenCode(url);
    case "no-answer":
    case "nobody-there":
      return failures.unreachable(url);
  }
}

/** Builds from source have no release number (`local`, `0.0.0-…`) and count as new. */
function isOlder(version: string, than: string): boolean {
  const numbers = releaseNumbers(version);
  const needed = releaseNumbers(than);
  if (!numbers || !needed || version.startsWith("0.0.0-")) return false;
  const difference = numbers.map((number, index) => number - (needed[index] ?? 0)).find((one) => one !== 0);
  return difference !== undefined && difference < 0;
}

function releaseNumbers(version: string): number[] | undefined {
  return /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
}
