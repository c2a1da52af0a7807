import { Refusal } from "../errors.ts";
import { sentence } from "../sentence.ts";
import type {
  AssistantMessageInfo,
  FilePart,
  Message,
  MessageInfo,
  OtherPart,
  Part,
  TextPart,
  ToolPart,
} from "../server-model.ts";
import { ATTACHMENT_LENGTH, describeFile } from "./attachment.ts";

/** What a fork is told of a call that had no result yet. */
export const IN_PROGRESS = "In progress when this conversation was forked.";

/** Marks that the model reads as words, by their kind. */
const SPOKEN_MARKS: ReadonlyMap<string, string> = new Map([
  ["compaction", "What did we do so far?"],
  ["subtask", "The following tool was executed by the user"],
]);

/** Files whose content stands beside them as text, which is what the model reads. */
const QUOTED_FILES: ReadonlySet<string> = new Set(["text/plain", "application/x-directory"]);

/** What of a conversation is wanted: everything that the model sees now, unless a user chose. */
export interface HistoryRange {
  /** The first message; one that answers brings the prompt it answers with it. What came before is left out, summaries too. */
  readonly fromMessageID?: string | undefined;
  /** The last message. */
  readonly upToMessageID?: string | undefined;
}

/** What a fork inherits of a conversation, before it is cut. */
export interface InheritedHistory {
  /** Oldest first: text, tool and file parts only, and every call has an end. */
  readonly messages: readonly Message[];
  /** Calls that had no result yet. */
  readonly openCalls: number;
  /** Files too large to be inherited. */
  readonly leftOutFiles: number;
  /** Whether the server's own copy of the source would show a model the same. */
  readonly isWhole: boolean;
  /** How many events that copy takes: one for each message and each part, those that the model does not see too. */
  readonly sourceEvents: number;
}

/**
 * What a fork inherits of a conversation (oldest message first): what its model sees now. Where OpenCode has compacted,
 * that is the summary, the messages that it kept beside it, and those that came after. Left out is what no model is sent
 * (ignored texts, step marks, patches, snapshots, answers that broke off in an error), and reasoning: a model cannot take
 * up what was reasoned in another session. A call without result ends as {@link IN_PROGRESS}; the message that is still
 * being written keeps what it has. Large files are replaced by a text that names them. The call that hands the fork its
 * prompt is left without it, as the prompt comes last, and without its result.
 *
 * Throws a {@link Refusal} if a message of the range is not there, or the first comes after the last.
 */
export function inheritedHistory(
  source: readonly Message[],
  range: HistoryRange = {},
  forkPrompt?: string,
): InheritedHistory {
  const { fromMessageID, upToMessageID } = range;
  const end = upToMessageID === undefined ? source.length : positionOf(source, upToMessageID) + 1;
  const known = source.slice(0, end);
  const chosen = fromMessageID === undefined ? afterCompaction(known) : startingAt(known, fromMessageID);

  let openCalls = 0;
  let leftOutFiles = 0;
  let leftOutPrompts = 0;
  const inherit = (part: Part, info: MessageInfo): Part | undefined => {
    switch (part.type) {
      case "text":
        return part.ignored || part.text === "" ? undefined : part;
      case "tool": {
        const isOwnCall = forkPrompt !== undefined && part.state.input["prompt"] === forkPrompt;
        // It was open when it launched the fork, which reads the conversation later.
        const isOpen = isOwnCall || !isEnded(part);
        if (isOpen) openCalls++;
        const call = isOpen ? closed(part, info) : part;
        if (!isOwnCall) return call;
        leftOutPrompts++;
        return withoutPrompt(call);
      }
      case "file":
        if (info.role === "user" && QUOTED_FILES.has(part.mime)) return undefined;
        if (part.url.length <= ATTACHMENT_LENGTH) return part;
        leftOutFiles++;
        return spoken(part, `${describeFile(part)} was too large to be inherited.`);
      case "reasoning":
        return undefined;
      case "other": {
        const words = SPOKEN_MARKS.get(part.kind);
        return words === undefined ? undefined : spoken(part, words);
      }
    }
  };
  const messages = chosen.filter(isSent).flatMap(({ info, parts }) => {
    const inherited = parts.flatMap((part) => inherit(part, info) ?? []);
    return inherited.length > 0 ? [{ info, parts: inherited }] : [];
  });
  return {
    messages,
    openCalls,
    leftOutFiles,
    isWhole:
      fromMessageID === undefined &&
      end === source.length &&
      openCalls === 0 &&
      leftOutFiles === 0 &&
      leftOutPrompts === 0 &&
      !known.some(isBeingWritten) &&
      !chosen.some(hasReasoning),
    sourceEvents: source.reduce((count, { parts }) => count + 1 + parts.length, 0),
  };
}

function positionOf(messages: readonly Message[], id: string): number {
  const position = messages.findIndex(({ info }) => info.id === id);
  if (position !== -1) return position;
  throw unknownMessage(id);
}

export function unknownMessage(id: string): Refusal {
  return new Refusal(
    "invalid-argument",
    sentence("Message {0} isn't in the forked part of the conversation. Select another message.", id),
  );
}

function startingAt(messages: readonly Message[], id: string): readonly Message[] {
  const position = positionOf(messages, id);
  const prompt = messages.findLastIndex(({ info }, index) => index <= position && info.role === "user");
  return messages.slice(prompt === -1 ? position : prompt);
}

/** What the model sees of a conversation that was compacted: the last summary first, whatever its time. */
function afterCompaction(messages: readonly Message[]): readonly Message[] {
  const summaryAt = messages.findLastIndex(
    (message) => isFinishedSummary(message) && compactionOf(messages, message) !== undefined,
  );
  const summary = messages[summaryAt];
  const request = summary && compactionOf(messages, summary);
  if (!request) return messages;
  const requestAt = messages.indexOf(request);
  const { tailStartID } = request.parts.find(isCompaction) ?? {};
  const tailAt = messages.findIndex(({ info }) => info.id === tailStartID);
  const rest = [
    ...(tailAt === -1 ? [] : messages.slice(tailAt, requestAt)),
    ...messages.slice(requestAt + 1, summaryAt),
    ...messages.slice(summaryAt + 1),
  ];
  return [...datedBefore(rest[0], [request, summary]), ...rest];
}

/** A server orders messages by their time, so those put before an older one take a time before it. */
function datedBefore(next: Message | undefined, messages: readonly Message[]): readonly Message[] {
  const limit = next?.info.created ?? Infinity;
  if (messages.every(({ info }) => info.created < limit)) return messages;
  return messages.map(({ info, parts }, index) => ({
    info: { ...info, created: limit - messages.length + index },
    parts,
  }));
}

type Answer = Message & { readonly info: AssistantMessageInfo };

function isFinishedSummary(message: Message): message is Answer {
  const { info } = message;
  return info.role === "assistant" && info.summary && info.finish !== undefined && !info.error;
}

/** The message that asked for this summary. */
function compactionOf(messages: readonly Message[], { info }: Message): Message | undefined {
  if (info.role === "user") return undefined;
  return messages.find((message) => message.info.id === info.parentID && message.parts.some(isCompaction));
}

function isCompaction(part: Part): part is OtherPart {
  return part.type === "other" && part.kind === "compaction";
}

/** Whether models are sent this message: of answers that ended in an error only those are that somebody aborted. */
function isSent({ info }: Message): boolean {
  return info.role === "user" || !info.error || info.error.name === "MessageAbortedError";
}

function isBeingWritten({ info }: Message): boolean {
  return info.role === "assistant" && info.completed === undefined;
}

function hasReasoning({ parts }: Message): boolean {
  return parts.some((part) => part.type === "reasoning" && part.text !== "");
}

function isEnded({ state }: ToolPart): boolean {
  return state.status === "completed" || state.status === "error";
}

function closed(part: ToolPart, { created }: MessageInfo): ToolPart {
  const { input } = part.state;
  const start = part.state.status === "pending" ? created : part.state.start;
  return { ...part, state: { status: "error", input, error: IN_PROGRESS, start, end: start } };
}

function withoutPrompt(part: ToolPart): ToolPart {
  const input = Object.fromEntries(Object.entries(part.state.input).filter(([name]) => name !== "prompt"));
  return { ...part, state: { ...part.state, input } };
}

/** A text in the place of a part. */
function spoken({ id, sessionID, messageID }: FilePart | OtherPart, text: string): TextPart {
  return { id, sessionID, messageID, type: "text", text, synthetic: true };
}
