import { ConnectionError } from "../engine/connection.ts";
import { sentence } from "../engine/sentence.ts";
import { DEFAULT_USERNAME } from "./access.ts";
import type { Attachment, Search } from "./attachment.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import { parseServerUrl } from "./server-url.ts";

/** A busy server responds late. One that does not respond within this time counts as unreachable. */
const HEALTH_TIMEOUT_MS = 10_000;
/** Installing plugins takes more than a minute if the registry cannot be reached. */
const LOAD_TIMEOUT_MS = 120_000;

export interface UrlServerOptions {
  readonly url: string;
  /** The password that a user entered for this URL. */
  readonly password: (url: string) => Promise<string | undefined>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Joins the server at an address that the user configured. Throws a `ConnectionError` if that fails. */
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
    // The password entered last takes precedence, as it is meant to correct the others.
    password: (await password(text)) ?? parsed.password ?? env.OPENCODE_SERVER_PASSWORD,
  };
  const health = await awaitHealth(access, HEALTH_TIMEOUT_MS, signal);
  const failure = healthFailure(health, url, false);
  if (failure) throw new ConnectionError(failure);
  const nothing = (): void => {};
  return {
    own: false,
    // Which program listens at a configured address cannot be verified; the user vouches for it.
    running: () => Promise.resolve(access),
    loadTimeoutMs: LOAD_TIMEOUT_MS,
    leave: nothing,
    finish: nothing,
    giveUp: nothing,
  };
}
