import type { AgentServer } from "./ports.ts";

/**
 * Whether the server has a prompt whose call failed: an answer that was lost does not say that the prompt was.
 * Undefined where that cannot be known now; the turn watcher decides later.
 */
export async function hasArrived(
  server: AgentServer,
  sessionID: string,
  messageID: string,
): Promise<boolean | undefined> {
  try {
    return (await server.message(sessionID, messageID)) !== undefined;
  } catch {
    return undefined;
  }
}
