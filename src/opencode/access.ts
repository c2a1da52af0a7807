/** The user name that OpenCode expects by default. */
export const DEFAULT_USERNAME = "opencode";

/** The address and credentials of a server. */
export interface ServerAccess {
  /** The origin, without credentials and trailing slash. */
  readonly url: string;
  readonly username: string;
  /** Undefined if the server requires no password. */
  readonly password?: string | undefined;
  /** Reaches this server and no other program at its address. Undefined for a server at an address of the user. */
  readonly fetch?: typeof fetch | undefined;
}

export function authorizationHeader({ username, password }: ServerAccess): Record<string, string> {
  if (password === undefined) return {};
  return { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}
