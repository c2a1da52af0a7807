import { UserFacingError } from "./errors.ts";
import { sentence, type Text } from "./sentence.ts";

/** Why there is no connection: a stable code for programs, and a message with a remedy for users. */
export interface ConnectionFailure {
  readonly code:
    | "not-found"
    | "bad-path"
    | "start-failed"
    | "start-timeout"
    /** The server runs, but refuses to load the folder. */
    | "folder-refused"
    | "unreachable"
    | "not-opencode"
    | "wrong-password"
    | "too-old"
    /** The installed OpenCode is of a later major version. */
    | "too-new"
    /** The server at the configured address is of a later major version. */
    | "server-too-new"
    | "bad-url"
    | "gave-up"
    /** The daemon does not start, or cannot be used. */
    | "daemon-failed"
    /** A newer version of this extension, in another editor, runs the daemon. */
    | "outdated";
  readonly message: Text;
  /** What the user can do, as a sentence. */
  readonly remedy: Text;
}

export type ConnectionState =
  | { readonly kind: "disconnected" }
  /** `detail` says what is going on, such as looking for OpenCode or starting the server. */
  | { readonly kind: "connecting"; readonly detail: Text }
  | {
      readonly kind: "connected";
      readonly url: string;
      readonly version: string;
      /** Whether the extension started the server. */
      readonly own: boolean;
      /** Set if the extension was not tested with this version. */
      readonly isUntested?: true;
      /** Set if an OpenCode 2 on this computer uses the same database. */
      readonly sharesDatabase?: true;
    }
  /** The connection was lost and is being restored. */
  | { readonly kind: "reconnecting"; readonly reason: Text }
  | { readonly kind: "failed"; readonly failure: ConnectionFailure };

/** How to start a program, without a shell. */
export interface ProgramCall {
  readonly executable: string;
  readonly args: readonly string[];
  /** The working directory. */
  readonly directory: string;
  /** Changes to its environment; null removes a variable. Secrets belong here: other users can read arguments. */
  readonly env: Readonly<Record<string, string | null>>;
}

/** What happened, and what the user can do. */
export function describeFailure({ message, remedy }: ConnectionFailure): Text {
  return sentence("{0} {1}", message, remedy);
}

/** Why `connect` failed. */
export class ConnectionError extends UserFacingError {
  override readonly name = "ConnectionError";

  constructor(readonly failure: ConnectionFailure) {
    super(failure.message);
  }
}
