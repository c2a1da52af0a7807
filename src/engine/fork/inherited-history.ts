import { invalidArgument, type Refusal } from "../errors.ts";
import { sentence } from "../sentence.ts";
import {
  ABORTED,
  type AssistantMessageInfo,
  type AttachedFile,
  type FilePart,
  type Message,
  type MessageInfo,
  type OtherPart,
  type Part,
  type TextPart,
  type ToolPart,
  type Undone,
} from "../server-model.ts";
import { MAX_FILE_URL, describeFile } from "./file-text.ts";
import { attachmentsOf } from "./tool-result.ts";

/** The result of calls that were still running, as the fork sees it. */
export const IN_PROGRESS = "In progress when this conversation was forked.";

/** What models are told of a call that was cut off, such as by a crash of the server. */
const INTERRUPTED = "[Tool execution was interrupted]";

/** What models are told in place of a result that OpenCode no longer sends, to save tokens. */
const CLEARED = "[Old tool result content cleared]";

/** The tool with which an agent forks itself. */
export const LAUNCH_TOOL = "asyncagents_task";

/** The metadata key of a request for a summary that was inherited as text, so that a fork of the fork knows it. */
const COMPACTION_MARK = "asyncagentsCompaction";

/** Parts that models read as text, by kind. */
const SPOKEN_MARKS: ReadonlyMap<string, string> = new Map([
  ["compaction", "What did we do so far?"],
  ["subtask", "The following tool was executed by the user"],
]);

/** Files whose content is also in the message as text, so that models read only the text. */
const QUOTED_FILES: ReadonlySet<string> = new Set(["text/plain", "application/x-directory"]);

/** The requested part of a conversation. By default everything that its model sees now. */
export interface HistoryRange {
  /** The first message, with its prompt if it is an answer. Earlier messages are left out, including summaries. */
  readonly fromMessageID?: string | undefined;
  /** The last message. */
  readonly upToMessageID?: string | undefined;
  /** What the user undid. It is left out. */
  readonly undoneFrom?: Undone | undefined;
}

/** What a fork inherits of a conversation, before it is cut to the limits. */
export interface InheritedHistory {
  /** The oldest first. Only text, tool and file parts; every call has ended. */
  readonly messages: readonly Message[];
  /** How many calls had no result yet. */
  readonly openCalls: number;
  /** Whether one of them launched the fork. */
  readonly hasLaunch: boolean;
  /** How many files were too large to be inherited. */
  readonly leftOutFiles: number;
  /** Whether the server's own copy of the source would show a model the same. */
  readonly isWhole: boolean;
  /** How many events that copy takes: one for each message and each part, including those that models do not see. */
  readonly sourceEvents: number;
}

/**
 * What a fork inherits of a conversation (oldest message first): what its model sees now. After a compaction, that is
 * the summary, the messages that OpenCode kept beside it, and later messages.
 *
 * Left out are parts that models are not sent (ignored texts, step marks, patches, snapshots, answers that ended in an
 * error) and reasoning, which cannot be continued in another session. A call without result ends as
 * {@link IN_PROGRESS}, or as OpenCode tells models if it was cut off. A message that is still being written keeps its present content. A large file is replaced by a
 * text that names it. The call that launched the fork loses its result and its prompt, as the prompt comes last anyway.
 *
 * Throws a {@link Refusal} if a message of the range does not exist, or the first comes after the last.
 */
export function inheritedHistory(
  source: readonly Message[],
  range: HistoryRange = {},
  forkPrompt?: string,
): InheritedHistory {
  const { fromMessageID, upToMessageID, undoneFrom } = range;
  const present = withoutUndone(source, undoneFrom);
  const end = upToMessageID === undefined ? source.length : positionOf(source, upToMessageID) + 1;
  const known = present.slice(0, end);
  const chosen = fromMessageID === undefined ? afterCompaction(known) : startingAt(known, fromMessageID);

  const launching =
    forkPrompt === undefined ? undefined : known.findLast(({ info }) => info.role === "assistant")?.info;

  // Only its calls can be in progress. Earlier ones without an end were cut off, such as by a crash of the server.
  const newest = source.findLast(({ info }) => info.role === "assistant")?.info;

  let openCalls = 0;
  let leftOutFiles = 0;
  let hasLaunch = false;
  const withSmallFiles = (part: ToolPart): ToolPart => {
    const { state } = part;
    const large = attachmentsOf(state).filter(isTooLarge);
    if (state.status !== "completed" || large.length === 0) return part;
    leftOutFiles += large.length;
    const attachments = attachmentsOf(state).filter((file) => !isTooLarge(file));
    // At the front, because a long output loses its end.
    return {
      ...part,
      state: { ...state, attachments, output: [...large.map(tooLarge), state.output].join("\n") },
    };
  };
  const inherit = (part: Part, info: MessageInfo): Part | undefined => {
    switch (part.type) {
      case "text":
        return part.ignored || part.text === "" ? undefined : part;
      case "tool": {
        const isOwnCall =
          info === launching && part.tool === LAUNCH_TOOL && part.state.input["prompt"] === forkPrompt;
        // The call was running when it launched the fork, but may have ended before the conversation was read.
        const isOpen = isOwnCall || (!isEnded(part) && info === newest);
        if (isOpen) openCalls++;
        const call = isOpen
          ? closed(part, info, IN_PROGRESS)
          : isEnded(part)
            ? withSmallFiles(asSent(part))
            : closed(part, info, INTERRUPTED);
        if (!isOwnCall) return call;
        hasLaunch = true;
        return withoutPrompt(call);
      }
      case "file":
        if (info.role === "user" && QUOTED_FILES.has(part.mime)) return undefined;
        if (!isTooLarge(part)) return part;
        leftOutFiles++;
        return spoken(part, tooLarge(part));
      case "reasoning":
        return undefined;
      case "other": {
        const words = SPOKEN_MARKS.get(part.kind);
        if (words === undefined) return undefined;
        return isCompaction(part)
          ? { ...spoken(part, words), metadata: { [COMPACTION_MARK]: true } }
          : spoken(part, words);
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
    hasLaunch,
    leftOutFiles,
    isWhole:
      fromMessageID === undefined &&
      undoneFrom === undefined &&
      end >= present.length &&
      openCalls === 0 &&
      leftOutFiles === 0 &&
      !known.some(isBeingWritten) &&
      !chosen.some(hasReasoning),
    sourceEvents: source.reduce((count, { parts }) => count + 1 + parts.length, 0),
  };
}

/** The messages that are left of a conversation after what the user undid, as OpenCode removes it at the next prompt. */
export function withoutUndone(
  messages: readonly Message[],
  undoneFrom: Undone | undefined,
): readonly Message[] {
  const position = messages.findIndex(({ info }) => info.id === undoneFrom?.messageID);
  const message = messages[position];
  if (!message) return messages;
  const kept = messages.slice(0, position);
  if (undoneFrom?.partID === undefined) return kept;
  const partAt = message.parts.findIndex(({ id }) => id === undoneFrom.partID);
  return [...kept, partAt === -1 ? message : { ...message, parts: message.parts.slice(0, partAt) }];
}

function positionOf(messages: readonly Message[], id: string): number {
  const position = messages.findIndex(({ info }) => info.id === id);
  if (position !== -1) return position;
  throw unknownMessage(id);
}

export function unknownMessage(id: string): Refusal {
  return invalidArgument(
    sentence("Message {0} isn't in the forked part of the conversation. Select another message.", id),
  );
}

function startingAt(messages: readonly Message[], id: string): readonly Message[] {
  const position = positionOf(messages, id);
  const prompt = messages.findLastIndex(({ info }, index) => index <= position && info.role === "user");
  return messages.slice(prompt === -1 ? position : prompt);
}

/** The conversation as the model sees it after a compaction: the last summary first, whatever its time. */
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

/** Servers sort messages by time, so messages moved before an older one must be dated before it. */
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

/** The message that requested this summary. */
function compactionOf(messages: readonly Message[], { info }: Message): Message | undefined {
  if (info.role === "user") return undefined;
  return messages.find((message) => message.info.id === info.parentID && message.parts.some(isCompaction));
}

/** Whether a message is the request for a compaction's summary, which follows it. */
export function asksForSummary({ info, parts }: Message): boolean {
  const isMarked = (part: Part): boolean =>
    part.type === "text" && part.metadata?.[COMPACTION_MARK] !== undefined;
  return info.role === "user" && parts.some((part) => isCompaction(part) || isMarked(part));
}

function isCompaction(part: Part): part is OtherPart {
  return part.type === "other" && part.kind === "compaction";
}

/** Whether models are sent this message. Answers that ended in an error are not sent, unless they were aborted. */
function isSent({ info }: Message): boolean {
  return info.role === "user" || !info.error || info.error.name === ABORTED;
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

/** A call with the result that models get. */
function asSent(part: ToolPart): ToolPart {
  const { state } = part;
  if (state.status === "completed" && state.isCleared)
    return { ...part, state: { ...state, output: CLEARED, attachments: undefined } };
  if (state.status !== "error" || state.partialOutput === undefined) return part;
  const { input, partialOutput: output, start, end } = state;
  return { ...part, state: { status: "completed", input, output, title: "", start, end } };
}

function isTooLarge({ url }: AttachedFile): boolean {
  return url.length > MAX_FILE_URL;
}

function tooLarge(file: AttachedFile): string {
  return `${describeFile(file)} was too large to be inherited.`;
}

function closed(part: ToolPart, { created }: MessageInfo, error: string): ToolPart {
  const { input } = part.state;
  const start = part.state.status === "pending" ? created : part.state.start;
  return { ...part, state: { status: "error", input, error, start, end: start } };
}

function withoutPrompt(part: ToolPart): ToolPart {
  const input = Object.fromEntries(Object.entries(part.state.input).filter(([name]) => name !== "prompt"));
  return { ...part, state: { ...part.state, input } };
}

/** A text that replaces a part. */
function spoken({ id, sessionID, messageID }: FilePart | OtherPart, text: string): TextPart {
  return { id, sessionID, messageID, type: "text", text, synthetic: true };
}
