import type { AgentServer } from "./ports.ts";
import type { FinalAnswer } from "./running-turn.ts";
import type { TaskRecord } from "./task.ts";
import { resultText } from "./turn.ts";

/**
 * The text with which a task ended. Undefined if it didn't end with an answer, or that is gone. Rejects with a
 * `ServerFailure`.
 * @param known the answer, if it has just been read
 */
export async function finalText(
  server: Pick<AgentServer, "message">,
  { id, finalMessageID }: Pick<TaskRecord, "id" | "finalMessageID">,
  known: FinalAnswer | undefined,
): Promise<string | undefined> {
  if (finalMessageID === undefined) return undefined;
  if (known?.messageID === finalMessageID) return known.text;
  const message = await server.message(id, finalMessageID);
  return message && resultText(message);
}
