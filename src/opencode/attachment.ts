import type { ConnectionFailure } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";
import type { ServerAccess } from "./access.ts";

/** A server that was found, and is used until it is left. */
export interface Attachment {
  /** Whether this product started it. */
  readonly own: boolean;
  /** How to reach it now: a server that was restarted may have moved. */
  readonly access: ServerAccess;
  /** How long it may take to load a folder, plugins included, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Tells from now on what happens to the server, until it is left. */
  watch(listener: AttachmentListener): void;
  leave(): void;
}

/** What can happen to a server while it is used. */
export interface AttachmentListener {
  /** It runs again after a crash, maybe elsewhere. */
  onRestarted(): void;
  /** It cannot be used any more. */
  onFailed(failure: ConnectionFailure): void;
  /** Somebody ended it on purpose. */
  onStopped(): void;
  /** Its watchdog is gone, so nobody looks after it. */
  onLost(): void;
}

/** What finding a server needs from who wants it. */
export interface Search {
  /** Gives the search up. */
  readonly signal: AbortSignal;
  /** What is going on, for people. */
  readonly onProgress: (detail: Text) => void;
}
