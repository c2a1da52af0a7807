/** Why a command was refused; stable words for programs. */
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
  | "over-budget"
  | "unavailable"
  | "cancelled-by-caller";

/** A command that the engine refuses. The message is one clear sentence for people and agents; nothing was changed. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message);
  }
}

/** The sentence in an error of any kind. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
