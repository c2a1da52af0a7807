import type { ProgramCall } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";

/** OpenCode's own terminal interface, joined to a session of a server that runs. */
export function attachCommand(
  executable: string,
  { url, username, password }: ServerAccess,
  directory: string,
  sessionID: string,
): ProgramCall {
  return {
    executable,
    args: ["attach", url, "--session", sessionID, "--dir", directory],
    directory,
    env: {
      OPENCODE_SERVER_USERNAME: username,
      // Taken out where the server asks for none: the one in the environment is another server's.
      OPENCODE_SERVER_PASSWORD: password ?? null,
    },
  };
}
