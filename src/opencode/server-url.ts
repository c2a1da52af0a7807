import { isIPv4 } from "node:net";
import type { ConnectionFailure } from "../engine/connection.ts";
import { sentence } from "../engine/sentence.ts";
import { failures } from "./failures.ts";

/** A server's address as entered by a user. */
export interface ServerUrl {
  /** The origin, without credentials and trailing slash. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Accepts only servers on this computer: a server runs any command it is sent, and plain HTTP is not encrypted. */
export function parseServerUrl(text: string): ServerUrl | ConnectionFailure {
  let parsed: URL;
  try {
    parsed = new URL(text.trim());
  } catch {
    // The text is not quoted, as it may contain a password.
    return failures.badUrl(sentence("it isn't a URL"));
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:")
    return failures.badUrl(sentence("it must start with http://"));
  if (!isLoopback(parsed.hostname))
    return failures.badUrl(sentence("{0} isn't this computer", parsed.hostname));
  if (parsed.pathname !== "/" || parsed.search || parsed.hash)
    return failures.badUrl(sentence("it must end after host and port"));
  try {
    return {
      url: parsed.origin,
      username: decodeURIComponent(parsed.username) || undefined,
      password: decodeURIComponent(parsed.password) || undefined,
    };
  } catch {
    return failures.badUrl(sentence("its user name or password contains an invalid % sequence"));
  }
}

/**
 * The address without its password, to be compared or kept in a file: the same for all ways to write it. Of a text that
 * isn't such an address nothing is kept, as anything in it may be a password.
 */
export function withoutPassword(text: string): string {
  const parsed = parseServerUrl(text);
  if ("code" in parsed) return "invalid";
  const url = new URL(text.trim());
  url.password = "";
  return url.href;
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" || hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."))
  );
}
