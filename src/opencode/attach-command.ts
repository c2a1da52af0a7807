import type { ProgramCall } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";

/** The command that attaches OpenCode's terminal interface to a session of a running server. */
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
      // Removed if the server requires no password, as the environment may contain that of another server.
      OPENCODE_SERVER_PASSWORD: password ?? null,
    },
  };
}
