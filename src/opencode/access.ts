/** The user name that OpenCode expects unless it was started with another one. */
export const DEFAULT_USERNAME = "opencode";

/** Where a server listens and what it wants to hear. */
export interface ServerAccess {
  /** Origin, without credentials and without a slash at the end. */
  readonly url: string;
  readonly username: string;
  /** Undefined: the server asks for none. */
  readonly password?: string | undefined;
}

export function authorizationHeader({ username, password }: ServerAccess): Record<string, string> {
  if (password === undefined) return {};
  return { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}
