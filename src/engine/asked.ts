import { hasArrived } from "./arrival.ts";
import type { Message, UserMessageInfo } from "./server-model.ts";

/* What the messages of a session that a model answers were sent for. */

/** The metadata key of a part of a notice. Its value is the ID of the task that ended. */
export const NOTICE_MARK = "asyncagentsNotice";

export type Prompt = Message & { readonly info: UserMessageInfo };

/** Whether this is a message that tells a parent of the end of a task. */
export function isNotice(message: Message): boolean {
  return message.parts.some((part) => part.type === "text" && part.metadata?.[NOTICE_MARK] !== undefined);
}

/** The latest prompt of a session. Skips the server's own requests, such as for a summary, and our notices. */
export function askedLast(messages: readonly Message[]): Prompt | undefined {
  const asked = messages.filter(isAsked);
  return asked.findLast((message) => hasArrived(message) && !isNotice(message)) ?? asked.at(-1);
}

function isAsked(message: Message): message is Prompt {
  return message.info.role === "user";
}
