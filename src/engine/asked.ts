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

/**
 * The message with which the last turn of a session began: its prompt, or a notice if the turn before had ended when that
 * came.
 */
export function beganWith(messages: readonly Message[]): Message | undefined {
  const prompt = askedLast(messages);
  const from = prompt ? messages.indexOf(prompt) : -1;
  const hasEnded = (at: number): boolean => {
    const last = messages.slice(from + 1, at).findLast(({ info }) => info.role === "assistant")?.info;
    if (last?.role !== "assistant" || last.completed === undefined) return false;
    return last.finish !== "tools" && !last.summary;
  };
  return messages.findLast((message, at) => at > from && isNotice(message) && hasEnded(at)) ?? prompt;
}

function isAsked(message: Message): message is Prompt {
  return message.info.role === "user";
}
