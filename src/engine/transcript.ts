import type { Disposable, Event } from "./event.ts";
import type { Message, MessageInfo, Part } from "./server-model.ts";

/** One step by which a conversation grew or changed. */
export type TranscriptChange =
  /** Everything anew, for example after the connection was lost for a while. */
  | { readonly type: "reset"; readonly messages: readonly Message[] }
  /** A message is new, or its facts changed; its parts stay. */
  | { readonly type: "message"; readonly info: MessageInfo }
  | { readonly type: "message-removed"; readonly messageID: string }
  /** A part is new, or is replaced whole. */
  | { readonly type: "part"; readonly part: Part }
  | { readonly type: "part-removed"; readonly messageID: string; readonly partID: string }
  /** Text was added to the end of a text or reasoning part. */
  | { readonly type: "text"; readonly messageID: string; readonly partID: string; readonly delta: string };

/** A conversation, followed live. */
export interface Transcript extends Disposable {
  readonly sessionID: string;
  /** As of now, streamed text included, oldest first. */
  readonly messages: readonly Message[];
  readonly onDidChange: Event<TranscriptChange>;
}
