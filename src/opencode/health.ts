import type { ConnectionFailure } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";
import { authorizationHeader } from "./access.ts";
import { failures } from "./failures.ts";
import { health as healthSchema, nextMajorInfo } from "./schemas.ts";
import { limited } from "./cancel.ts";
import { parse, ValidationError } from "./validation.ts";
import { supportOf } from "./versions.ts";

/**
 * A request sent while the server opens its port can hang forever, so probes are short and repeated. Each may take twice as
 * long as the one before, and the last one all the time that is left, as a busy server is slow.
 */
const FIRST_PROBE_TIMEOUT_MS = 500;
const LAST_PROBE_TIMEOUT_MS = 4_000;
const PROBE_PAUSE_MS = 100;

export type Health =
  /** Whether the version can be used is another question; see {@link healthFailure}. */
  | { readonly kind: "healthy"; readonly version: string }
  | { readonly kind: "no-answer" | "nobody-there" | "unauthorized" | "not-opencode" };

/** Probes once, with the password. `no-answer` may also mean that the server is busy. */
async function probe(access: ServerAccess, timeoutMs: number, signal?: AbortSignal): Promise<Health> {
  try {
    return await limited(timeoutMs, (limit) => ask(access, limit), signal);
  } catch (error) {
    if (error instanceof ValidationError || error instanceof SyntaxError) return { kind: "not-opencode" };
    return { kind: kindOf((error as { cause?: unknown }).cause) };
  }
}

async function ask(access: ServerAccess, signal: AbortSignal): Promise<Health> {
  const response = await get(access, "/global/health", signal);
  if (response.status === 401) return { kind: "unauthorized" };
  // Both major versions answer a path that they don't know with a page and status 200.
  if (response.status !== 200 || !isJson(response)) return askNextMajor(access, signal);
  const { healthy, version } = parse(healthSchema, await response.json());
  return healthy ? { kind: "healthy", version } : { kind: "no-answer" };
}

/** Asks where version 2 says what it is. It responds with status 503 while it starts. */
async function askNextMajor(access: ServerAccess, signal: AbortSignal): Promise<Health> {
  const response = await get(access, "/api/info", signal);
  if (response.status === 503 && isJson(response)) return { kind: "no-answer" };
  if (response.status !== 200 || !isJson(response)) return { kind: "not-opencode" };
  const { version } = parse(nextMajorInfo, await response.json());
  return supportOf(version) === "too-new" ? { kind: "healthy", version } : { kind: "not-opencode" };
}

function get(access: ServerAccess, path: string, signal: AbortSignal): Promise<Response> {
  const headers = authorizationHeader(access);
  return (access.fetch ?? fetch)(`${access.url}${path}`, { headers, redirect: "manual", signal });
}

function isJson(response: Response): boolean {
  return /^application\/json\b/i.test(response.headers.get("content-type") ?? "");
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
  const end = performance.now() + withinMs;
  for (let timeoutMs = FIRST_PROBE_TIMEOUT_MS; ; timeoutMs = Math.min(timeoutMs * 2, LAST_PROBE_TIMEOUT_MS)) {
    const restMs = Math.max(1, end - performance.now());
    // The next probe would get less than it should.
    const health = await probe(access, restMs < 3 * timeoutMs ? restMs : timeoutMs, signal);
    if (health.kind !== "no-answer" || signal?.aborted || performance.now() >= end) return health;
    await new Promise((resolve) => setTimeout(resolve, PROBE_PAUSE_MS));
  }
}

/**
 * Why a server with this health cannot be used. Undefined if it can.
 * @param own whether the extension started it
 */
export function healthFailure(health: Health, url: string, own: boolean): ConnectionFailure | undefined {
  switch (health.kind) {
    case "healthy":
      return versionFailure(health.version, url);
    case "unauthorized":
      return failures.wrongPassword(url);
    case "not-opencode":
      return failures.notOpenCode(url);
    case "no-answer":
    case "nobody-there":
      return own ? failures.silent(url) : failures.unreachable(url);
  }
}

function versionFailure(version: string, url: string): ConnectionFailure | undefined {
  const support = supportOf(version);
  if (support === "too-old") return failures.tooOld(version);
  return support === "too-new" ? failures.serverTooNew(url, version) : undefined;
}
