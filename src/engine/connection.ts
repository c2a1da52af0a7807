import { UserFacingError } from "./errors.ts";
import { sentence, type Text } from "./sentence.ts";

/** Why there is no connection: a stable code for programs, a sentence and its remedy for users. */
export interface ConnectionFailure {
  readonly code:
    | "not-found"
    | "bad-path"
    | "start-failed"
    | "start-timeout"
    | "unreachable"
    | "not-opencode"
    | "wrong-password"
    | "too-old"
    | "bad-url"
    | "gave-up"
    /** The process in which tasks are looked after does not start, or cannot be used. */
    | "daemon-failed"
    /** Another editor's version of this product is newer. */
    | "outdated";
  readonly message: Text;
  /** What the user can do, as a sentence. */
  readonly remedy: Text;
}

export type ConnectionState =
  | { readonly kind: "disconnected" }
  /** `detail` says what is going on: looking for OpenCode, starting the server, … */
  | { readonly kind: "connecting"; readonly detail: Text }
  | { readonly kind: "connected"; readonly url: string; readonly version: string; readonly own: boolean }
  /** Was connected, and tries again. */
  | { readonly kind: "reconnecting"; readonly reason: Text }
  | { readonly kind: "failed"; readonly failure: ConnectionFailure };

/** A program as it is started, without a shell. */
export interface ProgramCall {
  readonly executable: string;
  readonly args: readonly string[];
  /** Where it works. */
  readonly directory: string;
  /** What is added to its environment; null is taken out of it. Secrets are here: others can read arguments. */
  readonly env: Readonly<Record<string, string | null>>;
}

/** What is the matter, and what the user can do. */
export function describeFailure({ message, remedy }: ConnectionFailure): Text {
  return sentence("{0} {1}", message, remedy);
}

/** `connect` did not succeed. */
export class ConnectionError extends UserFacingError {
  override readonly name = "ConnectionError";

  constructor(readonly failure: ConnectionFailure) {
    super(failure.message);
  }
}
