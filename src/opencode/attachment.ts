import type { ConnectionFailure } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";
import type { ServerAccess } from "./access.ts";

/** A server that was found, and is used until it is left. */
export interface Attachment {
  /** Whether this product started it. */
  readonly own: boolean;
  /** The process of one that this product started, while it runs. */
  readonly pid?: number | undefined;
  /**
   * How to reach it now. Nothing may be sent to a server before this resolves, nor after its connection broke until it is
   * asked again: another program may have its port. Rejects with a `ConnectionError` if there is no server.
   */
  vouched(signal: AbortSignal): Promise<ServerAccess>;
  /** How long it may take to load a folder, plugins included, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Tells from now on what happens to the server, until it is left. */
  watch(listener: AttachmentListener): void;
  leave(): void;
  /** As {@link leave}, for good: a server that this product started ends, unless somebody else uses it. */
  finish(): void;
}

/** What can happen to a server while it is used. */
export interface AttachmentListener {
  /** Its process has ended: whatever listens there now is another. */
  onCrashed(): void;
  /** It runs again after a crash, elsewhere. */
  onRestarted(): void;
  /** It cannot be used any more. */
  onFailed(failure: ConnectionFailure): void;
  /** Somebody ended it on purpose. */
  onStopped(): void;
}

/** What finding a server needs from who wants it. */
export interface Search {
  /** Gives the search up. */
  readonly signal: AbortSignal;
  /** What is going on, for people. */
  readonly onProgress: (detail: Text) => void;
}
