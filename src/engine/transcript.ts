import type { Disposable, Event } from "./event.ts";
import type { Message, MessageInfo, Part } from "./server-model.ts";

/** One change of a conversation. */
export type TranscriptChange =
  /** Replaces everything, such as after a lost connection. */
  | { readonly type: "reset"; readonly messages: readonly Message[] }
  /** A message was added, or its properties changed. Its parts stay. */
  | { readonly type: "message"; readonly info: MessageInfo }
  | { readonly type: "message-removed"; readonly messageID: string }
  /** A part was added or replaced. */
  | { readonly type: "part"; readonly part: Part }
  | { readonly type: "part-removed"; readonly messageID: string; readonly partID: string }
  /** Text was appended to a text or reasoning part. */
  | { readonly type: "text"; readonly messageID: string; readonly partID: string; readonly delta: string };

/** A conversation, updated live. */
export interface Transcript extends Disposable {
  readonly sessionID: string;
  /** The current messages, including streamed text, the oldest first. */
  readonly messages: readonly Message[];
  readonly onDidChange: Event<TranscriptChange>;
}
