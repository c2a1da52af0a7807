import { ToldError } from "./errors.ts";
import type { CancelSignal, Event } from "./event.ts";
import type { AgentServer } from "./ports.ts";
import { sentence, type Text } from "./sentence.ts";

/** Why there is no connection: a stable code for programs, a sentence and its remedy for people. */
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
  /** What the person can do, as a sentence. */
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

/** The way to the server of one folder, over all its restarts. */
export interface ServerConnection {
  readonly state: ConnectionState;
  readonly onDidChangeState: Event<ConnectionState>;
  /** After each (re)connect, once events flow: whatever was known before may be stale. */
  readonly onDidConnect: Event<void>;
  /** Usable while connected; calls made otherwise reject with a `ServerFailure`. Stays the same object for good. */
  readonly server: AgentServer;

  /** Joins a server that runs already for this folder, if there is one; starts none. Resolves to whether it joined. */
  adopt(): Promise<boolean>;
  /** Connects, starting a server where none runs. Resolves when connected; rejects with a `ConnectionError`. */
  connect(signal?: CancelSignal): Promise<void>;
  /** Leaves the server. It stays up for others and for its grace period. */
  disconnect(): Promise<void>;
  /** Ends a server that this product started, and leaves it. */
  stopServer(): Promise<void>;
  /** What a terminal runs to join a session of the server. Rejects with a `ConnectionError` where that cannot be. */
  attachCommand(sessionID: string): Promise<ProgramCall>;
}

/** What is the matter, and what the person can do. */
export function describeFailure({ message, remedy }: ConnectionFailure): Text {
  return sentence("{0} {1}", message, remedy);
}

/** `connect` did not succeed. */
export class ConnectionError extends ToldError {
  override readonly name = "ConnectionError";

  constructor(readonly failure: ConnectionFailure) {
    super(failure.message);
  }
}
