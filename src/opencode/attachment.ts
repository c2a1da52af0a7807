import type { ConnectionFailure } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";
import type { ServerAccess } from "./access.ts";

/** A running server and how to reach it. */
export interface RunningServer extends ServerAccess {
  /** The process ID, if the extension started the server. */
  readonly pid?: number | undefined;
  /** Resolves once that process has ended. From then on, any other program may listen at the address. */
  readonly ended?: Promise<unknown> | undefined;
}

/** A server that was found, in use until `leave` or `finish` is called. */
export interface Attachment {
  /** Whether the extension started it. */
  readonly own: boolean;
  /** The key of such a server, by which the next daemon finds it. */
  readonly key?: string | undefined;
  /**
   * Resolves to the running server (after a crash, to the restarted one), to why it cannot be used, or to "stopped" if
   * a user stopped it. Call it before sending anything to a server, and again whenever its connection broke: another
   * program may have taken its port.
   */
  running(signal: AbortSignal): Promise<RunningServer | ConnectionFailure | "stopped">;
  /** How long loading a folder may take, including its plugins, in milliseconds. */
  readonly loadTimeoutMs: number;
  leave(): void;
  /** Like {@link leave}, but permanently: a server that the extension started ends, unless another folder uses it. */
  finish(): void;
  /** Like {@link finish}, for a server that is no use to this folder, but may be to others of an earlier daemon. */
  giveUp(): void;
}

/** What a search for a server needs from its caller. */
export interface Search {
  /** Aborts the search. */
  readonly signal: AbortSignal;
  /** Receives the current step, for users. */
  readonly onProgress: (detail: Text) => void;
}
