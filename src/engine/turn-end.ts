import { sentence } from "./sentence.ts";
import { taskError, type TaskError } from "./task.ts";
import type { TaskEvent } from "./transitions.ts";
import type { EndedTurn } from "./turn.ts";

/** The event that this state of a turn means if its session is idle. */
export function endOf(turn: EndedTurn): TaskEvent {
  switch (turn.kind) {
    case "compacted":
    case "completed":
      return { type: "turn-completed", at: turn.at, finalMessageID: turn.messageID, answer: turn.answer };
    case "failed":
      return failed(turn.at, turn.error, turn.messageID);
    case "aborted":
      // While the session is running, an answer that exceeded the context looks the same.
      return { type: "cancelled", at: turn.at, finalMessageID: turn.messageID };
    case "between-steps": {
      const error = turn.refused
        ? taskError(
            "PermissionRejected",
            sentence("The request of the tool {0} was rejected, which ended the task.", turn.refused),
          )
        : taskError(
            "NoAnswer",
            sentence("The turn ended after a tool call, without an answer. Continue the task as a new one."),
          );
      return failed(turn.at, error, turn.messageID);
    }
  }
}

/** A turn that failed, at this time in milliseconds since 1970. */
export function failed(
  at: number,
  error: TaskError,
  finalMessageID?: string,
): Extract<TaskEvent, { readonly type: "turn-failed" }> {
  return { type: "turn-failed", at, error, finalMessageID };
}
