import { Refusal } from "./errors.ts";
import { sentence, type Sentence } from "./sentence.ts";
import {
  shortID,
  withSpan,
  type FollowUp,
  type TaskError,
  type TaskRecord,
  type TaskStatus,
} from "./task.ts";

/**
 * What can happen to a task once it exists. `at` is in milliseconds since 1970. `neverBegan`: the server doesn't have the
 * prompt. If it was a follow-up, the task does not count as resumed.
 */
export type TaskEvent =
  | {
      readonly type: "turn-completed";
      readonly at: number;
      readonly finalMessageID: string;
      /** The text of the final message. */
      readonly answer: string;
    }
  | {
      readonly type: "turn-failed";
      readonly at: number;
      readonly error: TaskError;
      readonly finalMessageID?: string | undefined;
      /** The message that was being written when the server ended. */
      readonly openMessageID?: string;
      readonly neverBegan?: boolean;
    }
  | {
      readonly type: "cancelled";
      readonly at: number;
      readonly finalMessageID?: string | undefined;
      readonly neverBegan?: boolean;
    }
  | { readonly type: "resume"; readonly at: number; readonly promptMessageID: string };

/** The complete lifecycle: for each status, where each event leads. All other events are refused. */
const TABLE: Readonly<Record<TaskStatus, Partial<Record<TaskEvent["type"], TaskStatus>>>> = {
  running: { "turn-completed": "completed", "turn-failed": "error", cancelled: "cancelled" },
  resumed: { "turn-completed": "completed", "turn-failed": "error", cancelled: "cancelled" },
  completed: { resume: "resumed" },
  error: {},
  cancelled: {},
};

/** The statuses as words in a sentence. */
export const STATUS_WORDS: Readonly<Record<TaskStatus, Sentence>> = {
  running: sentence("running"),
  completed: sentence("completed"),
  error: sentence("error"),
  cancelled: sentence("cancelled"),
  resumed: sentence("resumed"),
};

/** The record after the event. Throws a {@link Refusal} with the status and a way out if the table has no entry. */
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
        finalMessageID: event.finalMessageID ?? openMessageID(event) ?? record.finalMessageID,
        error: event.type === "turn-failed" ? event.error : undefined,
        resumeCount: record.resumeCount - (wasNotResumed(record, event) ? 1 : 0),
        followUp: followUpAfter(record, event),
      };
    case "resume":
      return {
        ...record,
        status,
        startedAt: event.at,
        endedAt: undefined,
        promptMessageID: event.promptMessageID,
        resumeCount: record.resumeCount + 1,
        waited: undefined,
        spans: withSpan(record.spans, ["turn", record.startedAt, record.endedAt ?? record.startedAt]),
      };
  }
}

/** A resume is counted when it begins, before its prompt has arrived. */
function wasNotResumed({ status }: TaskRecord, event: TaskEvent): boolean {
  return status === "resumed" && neverBegan(event);
}

/** A message that was sent as a follow-up has been answered. One that waits, or was lost, stays. */
function followUpAfter({ followUp }: TaskRecord, event: TaskEvent): FollowUp | undefined {
  if (followUp?.messageID === undefined) return followUp;
  return neverBegan(event) ? { text: followUp.text } : undefined;
}

function openMessageID(event: TaskEvent): string | undefined {
  return event.type === "turn-failed" ? event.openMessageID : undefined;
}

function neverBegan(event: TaskEvent): boolean {
  return "neverBegan" in event && event.neverBegan === true;
}

function refusal({ id, status }: TaskRecord, event: TaskEvent): Refusal {
  if (event.type === "resume" && status === "resumed")
    return new Refusal(
      "being-resumed",
      sentence(
        "Task {0} is currently being resumed. Send it a message instead, or wait for its result before you resume it again.",
        shortID(id),
      ),
    );
  const values = [shortID(id), STATUS_WORDS[status]] as const;
  return new Refusal(
    "wrong-status",
    event.type === "resume" ? notResumable(status, values) : notRunning(status, values),
  );
}

function notResumable(status: TaskStatus, values: readonly [string, Sentence]): Sentence {
  return status === "running"
    ? sentence(
        "Only completed tasks can be resumed. Task {0} has the status {1}; send it a message instead, or wait until it has completed.",
        ...values,
      )
    : sentence(
        "Only completed tasks can be resumed. Task {0} has the status {1}; retry or continue it as a new task.",
        ...values,
      );
}

function notRunning(status: TaskStatus, values: readonly [string, Sentence]): Sentence {
  return status === "completed"
    ? sentence("Task {0} isn't running; it has the status {1}. Resume it to continue.", ...values)
    : sentence("Task {0} isn't running; it has the status {1}. Launch a new task to continue.", ...values);
}
