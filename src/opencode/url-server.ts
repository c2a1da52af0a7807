import { ConnectionError } from "../engine/connection.ts";
import { sentence } from "../engine/sentence.ts";
import { DEFAULT_USERNAME } from "./access.ts";
import type { Attachment, Search } from "./attachment.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import { parseServerUrl } from "./server-url.ts";

/** A server that is busy answers late; one that does not answer for this long is not there. */
const HEALTH_TIMEOUT_MS = 10_000;
/** Installing what its plugins need takes more than a minute where the registry cannot be reached. */
const LOAD_TIMEOUT_MS = 120_000;

export interface UrlServerOptions {
  readonly url: string;
  /** The password that a user entered for this URL. */
  readonly password: (url: string) => Promise<string | undefined>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Joins the server that somebody else keeps running at a given address. Throws a `ConnectionError` if it cannot. */
export async function findServerByUrl(
  { url: text, password, env }: UrlServerOptions,
  { signal, onProgress }: Search,
): Promise<Attachment> {
  const parsed = parseServerUrl(text);
  if ("code" in parsed) throw new ConnectionError(parsed);
  const { url } = parsed;
  onProgress(sentence("Connecting to {0}…", url));
  const access = {
    url,
    username: parsed.username ?? env.OPENCODE_SERVER_USERNAME ?? DEFAULT_USERNAME,
    // What was entered last is meant to correct the others.
    password: (await password(text)) ?? parsed.password ?? env.OPENCODE_SERVER_PASSWORD,
  };
  const health = await awaitHealth(access, HEALTH_TIMEOUT_MS, signal);
  const failure = healthFailure(health, url);
  if (failure) throw new ConnectionError(failure);
  const nothing = (): void => {};
  return {
    own: false,
    // Nobody can tell who listens at an address that a user set: it is the user's word.
    running: () => Promise.resolve(access),
    loadTimeoutMs: LOAD_TIMEOUT_MS,
    leave: nothing,
    finish: nothing,
  };
}
