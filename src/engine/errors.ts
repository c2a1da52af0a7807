import { english, sentence, type Text } from "./sentence.ts";

/** Why a command was refused, as stable codes for programs. */
export type RefusalCode =
  | "empty-prompt"
  | "invalid-argument"
  | "unknown-agent"
  | "unknown-model"
  | "unknown-task"
  | "ambiguous-task"
  | "unknown-session"
  | "unknown-batch"
  | "wrong-status"
  | "being-resumed"
  | "session-gone"
  | "still-running"
  | "too-deep"
  | "not-allowed"
  | "needs-permission"
  | "over-budget"
  | "stale-file"
  /** Git cannot make a worktree here, or the task has none. */
  | "no-worktree"
  /** It can be made again with `remakeWorktree`. */
  | "worktree-gone"
  /** Its work has to be discarded first. */
  | "has-worktree"
  /** The user has not allowed the setup command of worktrees yet. */
  | "setup-not-allowed"
  | "unavailable"
  /** The only code after which something was changed: the text says what was done, and why the rest was not. */
  | "partly-done"
  | "cancelled-by-caller";

/** An error with a text for users. Its message is the same text in English. */
export class UserFacingError extends Error {
  constructor(readonly text: Text) {
    super(english(text));
  }
}

/** A refused command, with one sentence for users and agents. Nothing was changed, except for `partly-done`. */
export class Refusal extends UserFacingError {
  override readonly name = "Refusal";

  constructor(
    readonly code: RefusalCode,
    text: Text,
  ) {
    super(text);
  }
}

/** What a user, an agent or a program passed can't be used. */
export function invalidArgument(text: Text): Refusal {
  return new Refusal("invalid-argument", text);
}

/** No task has this ID, or its session is gone and no longer remembered. */
export function unknownTask(reference: string): Refusal {
  return new Refusal(
    "unknown-task",
    sentence(
      "Task {0} doesn't exist, or its session no longer exists. List the tasks to see their IDs, or start a new asyncagents_task instead.",
      reference,
    ),
  );
}

/** An agent has to ask the user before it launches another agent. */
export class AskFirst extends Refusal {
  constructor(
    readonly agent: string,
    text: Text,
  ) {
    super("needs-permission", text);
  }
}

/** The text of any error, for users. */
export function textOf(error: unknown): Text {
  return error instanceof UserFacingError ? error.text : messageOf(error);
}

/** The text of any error, in English. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
