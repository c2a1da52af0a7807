import { sentence } from "./sentence.ts";
import { INTERRUPTED_ERROR, taskError, type TaskError, type TaskRecord } from "./task.ts";

/** The error of a turn that was interrupted because its server died. */
export const INTERRUPTED = taskError(
  INTERRUPTED_ERROR,
  sentence("The server stopped while the task was running. Retry it as a new task."),
);

export const NEVER_STARTED = taskError(
  "NeverStarted",
  sentence("The task was created, but its prompt was never started. Retry it as a new task."),
);

/** The same, of a prompt that was lost as well, so that there is nothing to retry. */
export const NEVER_STORED = taskError(
  "NeverStarted",
  sentence("The task was created, but the server never stored its prompt. Launch a new task instead."),
);

export const NEVER_ANSWERED = taskError(
  "NeverAnswered",
  sentence("A message to the task was never answered. Continue the task as a new one."),
);

/** The error of a turn whose prompt was lost. */
export function promptLost({ status, isForked }: TaskRecord): TaskError {
  return taskError(
    "PromptLost",
    status === "resumed"
      ? sentence("The follow-up was lost before the server stored it. Continue the task as a new one.")
      : isForked
        ? sentence(
            "The conversation and the prompt were lost before the server stored them. Launch a new task instead.",
          )
        : sentence("The prompt was lost before the server stored it. Launch a new task instead."),
  );
}
