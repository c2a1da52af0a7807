import type { ConnectionFailure } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";
import type { ServerAccess } from "./access.ts";

/** A server that runs, and how to reach it. */
export interface RunningServer extends ServerAccess {
  /** The process of one that this product started. */
  readonly pid?: number | undefined;
  /** Resolves once that process has ended: whatever listens at the address then is another program. */
  readonly ended?: Promise<unknown> | undefined;
}

/** A server that was found, and is used until it is left. */
export interface Attachment {
  /** Whether this product started it. */
  readonly own: boolean;
  /**
   * The server as it runs now or, after a crash, once it runs again; else why it cannot be used, or that a user stopped it.
   * Nothing may be sent to a server before this resolves, nor after its connection broke until it is asked again:
   * another program may have its port.
   */
  running(signal: AbortSignal): Promise<RunningServer | ConnectionFailure | "stopped">;
  /** How long it may take to load a folder, plugins included, in milliseconds. */
  readonly loadTimeoutMs: number;
  leave(): void;
  /** As {@link leave}, for good: a server that this product started ends, unless somebody else uses it. */
  finish(): void;
}

/** What finding a server needs from who wants it. */
export interface Search {
  /** Gives the search up. */
  readonly signal: AbortSignal;
  /** What is going on, for users. */
  readonly onProgress: (detail: Text) => void;
}
