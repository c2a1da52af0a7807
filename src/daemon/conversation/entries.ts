import { hasArrived } from "../../engine/arrival.ts";
import { isNotice } from "../../engine/asked.ts";
import { ABORTED, type Message, type MessageInfo, type Part } from "../../engine/server-model.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import type { TranscriptChange } from "../../engine/transcript.ts";
import { isSteering } from "../../engine/turn.ts";
import type { ConversationEntry, EntryChange, PromptEntry } from "../../protocol/output.ts";
import { toToolEntry } from "./tool-model.ts";

/** How a conversation is read: which messages launched or continued the task, and where its files are. */
export interface Perspective {
  /** Messages before this time are part of the history that a fork inherited. */
  readonly ownSince: number;
  /** The message that launched the task; later prompts are follow-ups. */
  readonly promptMessageID: string | undefined;
  /** The folder that the agent works in. */
  readonly folder?: string | undefined;
}

/** The size of an entry in addition to its text, in characters. */
const ENTRY_SIZE = 200;

export function perspectiveOf(
  child: Child | undefined,
  messages: readonly Message[],
  folder?: string,
): Perspective {
  const ownSince = child && isTask(child) && child.isForked ? child.createdAt : 0;
  // A conversation that was handed over as text is no prompt.
  const prompt = messages.find(
    (message) =>
      message.info.role === "user" &&
      message.info.created >= ownSince &&
      hasArrived(message) &&
      !isNotice(message),
  );
  return { ownSince, promptMessageID: prompt?.info.id, folder };
}

/** The entries of one message in reading order. */
export function entriesOf(message: Message, perspective: Perspective): ConversationEntry[] {
  const entries = message.parts.flatMap((part) => toEntry(message, part, perspective) ?? []);
  const failure = toErrorEntry(message.info);
  return failure ? [...entries, failure] : entries;
}

/** The entry for a part; undefined if the part has nothing for users to read. */
function toEntry(message: Message, part: Part, perspective: Perspective): ConversationEntry | undefined {
  const { id, messageID } = part;
  const { info } = message;
  switch (part.type) {
    case "text": {
      if (part.synthetic) return undefined;
      const { text } = part;
      if (info.role === "assistant") return { kind: "text", id, messageID, text };
      return {
        kind: "prompt",
        id,
        messageID,
        text,
        at: info.created,
        origin: originOf(message, perspective),
      };
    }
    case "reasoning":
      return { kind: "reasoning", id, messageID, text: part.text, start: part.start, end: part.end };
    case "tool":
      return toToolEntry(part, perspective.folder);
    case "file":
      return { kind: "file", id, messageID, name: part.filename ?? part.mime, mime: part.mime };
    case "other":
      return part.kind === "compaction" ? { kind: "compaction", id, messageID } : undefined;
  }
}

function originOf(message: Message, perspective: Perspective): PromptEntry["origin"] {
  if (isNotice(message)) return "notice";
  if (message.info.created < perspective.ownSince) return "inherited";
  if (isSteering(message)) return "message";
  return message.info.id === perspective.promptMessageID ? "prompt" : "follow-up";
}

function toErrorEntry(info: MessageInfo): ConversationEntry | undefined {
  if (info.role !== "assistant" || !info.error) return undefined;
  const { name, message } = info.error;
  return {
    kind: "error",
    id: `${info.id}/error`,
    messageID: info.id,
    message: message === "" ? name : message,
    interrupted: name === ABORTED,
  };
}

/** A range of entries, and whether there are others before it. */
export interface Page {
  readonly entries: readonly ConversationEntry[];
  readonly earlier: boolean;
}

/**
 * The newest entries, or those just before the entry `before`, oldest first, with about `size` characters in total.
 * Undefined if there is no such entry.
 */
export function pageOf(
  messages: readonly Message[],
  perspective: Perspective,
  size: number,
  before?: string,
): Page | undefined {
  const newestFirst: ConversationEntry[] = [];
  let found = before === undefined;
  let length = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    for (const entry of entriesOf(messages[index]!, perspective).reverse()) {
      if (!found) found = entry.id === before;
      else if (length >= size) return { entries: newestFirst.reverse(), earlier: true };
      else {
        newestFirst.push(entry);
        length += ENTRY_SIZE + ("text" in entry ? entry.text.length : 0);
      }
    }
  }
  return found ? { entries: newestFirst.reverse(), earlier: false } : undefined;
}

/**
 * The entry changes that result from a change of the transcript. A reset is sent as a new page instead.
 * @param transcript `messages` is read only if needed, because text deltas come by the thousand
 */
export function toEntryChanges(
  change: Exclude<TranscriptChange, { type: "reset" }>,
  transcript: { readonly messages: readonly Message[] },
  perspective: Perspective,
): EntryChange[] {
  switch (change.type) {
    case "message":
      // Its parts may have come before it.
      return putAll(change.info.id, transcript.messages, perspective);
    case "message-removed":
      return [{ type: "remove-message", messageID: change.messageID }];
    case "part": {
      const { id, messageID } = change.part;
      const changes = putAll(messageID, transcript.messages, perspective).filter(
        ({ entry }) => entry.id === id,
      );
      return changes.length > 0 ? changes : [{ type: "remove", id }];
    }
    case "part-removed":
      return [{ type: "remove", id: change.partID }];
    case "text":
      return [{ type: "append", id: change.partID, delta: change.delta }];
  }
}

/** Puts the entries of a message in their places. Searches from the end, where nearly all changes happen. */
function putAll(
  messageID: string,
  messages: readonly Message[],
  perspective: Perspective,
): (EntryChange & { readonly type: "put" })[] {
  const at = messages.findLastIndex((message) => message.info.id === messageID);
  const message = messages[at];
  if (!message) return [];
  const entries = entriesOf(message, perspective);
  let after: string | undefined;
  for (let previous = at - 1; after === undefined && previous >= 0; previous--)
    after = entriesOf(messages[previous]!, perspective).at(-1)?.id;
  return entries.map((entry, index) => ({ type: "put", entry, after: entries[index - 1]?.id ?? after }));
}
