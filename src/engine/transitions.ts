import { Refusal } from "./errors.ts";
import { shortID, type TaskError, type TaskRecord, type TaskStatus } from "./task.ts";

/** What can happen to a task once it exists. `at` is in milliseconds since 1970. */
export type TaskEvent =
  | { readonly type: "turn-completed"; readonly at: number; readonly finalMessageID: string }
  | {
      readonly type: "turn-failed";
      readonly at: number;
      readonly error: TaskError;
      readonly finalMessageID?: string | undefined;
    }
  | { readonly type: "cancelled"; readonly at: number; readonly finalMessageID?: string | undefined }
  | { readonly type: "resume"; readonly at: number; readonly promptMessageID: string }
  /** The server never took the prompt of a resume. */
  | { readonly type: "resume-undone" };

/** The lifecycle, whole: from each status, where each event leads. What is not here is refused. */
const TABLE: Readonly<Record<TaskStatus, Partial<Record<TaskEvent["type"], TaskStatus>>>> = {
  running: { "turn-completed": "completed", "turn-failed": "error", cancelled: "cancelled" },
  resumed: {
    "turn-completed": "completed",
    "turn-failed": "error",
    cancelled: "cancelled",
    "resume-undone": "completed",
  },
  completed: { resume: "resumed" },
  error: {},
  cancelled: {},
};

/** The record after the event. Throws a {@link Refusal} that names the status and the way on where the table has none. */
export function transition(record: TaskRecord, event: TaskEvent): TaskRecord {
  const status = TABLE[record.status][event.type];
  if (status === undefined) throw refusal(record, event);
  switch (event.type) {
    case "turn-completed":
    case "turn-failed":
    case "cancelled":
      return {
        ...record,
        status,
        endedAt: event.at,
        finalMessageID: event.finalMessageID ?? record.finalMessageID,
        error: event.type === "turn-failed" ? event.error : undefined,
        resumedFrom: undefined,
      };
    case "resume":
      return {
        ...record,
        status,
        startedAt: event.at,
        promptMessageID: event.promptMessageID,
        waited: undefined,
        resumedFrom: { promptMessageID: record.promptMessageID, startedAt: record.startedAt },
      };
    case "resume-undone":
      return { ...record, status, ...record.resumedFrom, resumedFrom: undefined, callID: undefined };
  }
}

function refusal(record: TaskRecord, event: TaskEvent): Refusal {
  const task = `Task ${shortID(record.id)}`;
  if (event.type === "resume") {
    if (record.status === "resumed")
      return new Refusal(
        "being-resumed",
        `${task} is currently being resumed; wait for its answer before you resume it again.`,
      );
    const way =
      record.status === "running"
        ? "wait until it has completed"
        : "retry it as a new task, or fork it to carry on from its conversation";
    return new Refusal(
      "wrong-status",
      `Only completed tasks can be resumed: ${task.toLowerCase()} has the status ${record.status}; ${way}.`,
    );
  }
  const way = record.status === "completed" ? "resume it to go on" : "retry it as a new task to go on";
  return new Refusal("wrong-status", `${task} is not running: it has the status ${record.status}; ${way}.`);
}
