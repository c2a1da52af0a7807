import { percentOf } from "../../engine/limit.ts";
import type { OpenRequest } from "../../engine/engine.ts";
import { isNotice } from "../../engine/notices.ts";
import type { Text } from "../../engine/sentence.ts";
import type { Message, MessageInfo, Part, PermissionRequest, Question } from "../../engine/server-model.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import { type ModelRef, shortID, type Task, waitingMessage } from "../../engine/task.ts";
import type { TranscriptChange } from "../../engine/transcript.ts";
import { isSteering } from "../../engine/turn.ts";
import {
  type ActivityView,
  type ConversationEntry,
  type EntryChange,
  type PromptEntry,
  type QuestionView,
  type RequestView,
  type TaskLink,
  type TaskView,
} from "../../protocol/output.ts";
import { title, visible } from "../plain-text.ts";
import { proposedDiff, requestReason, text } from "../requests/request-facts.ts";
import { ancestors, type Family } from "../tree/family.ts";
import { relativePath } from "./relative-path.ts";
import { excerptOfLines, toToolEntry } from "./tool-model.ts";

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
/** Names of the errors that the server reports when someone stopped the turn. */
const INTERRUPTIONS: ReadonlySet<string> = new Set(["MessageAbortedError"]);

/** How a task is shown. */
interface TaskWording {
  readonly translate: (text: Text) => string;
  readonly folder?: string | undefined;
  /** The tasks that were launched in place of this one. */
  readonly successors?: readonly Task[];
}

export function toTaskView(child: Child, { translate, folder, successors = [] }: TaskWording): TaskView {
  const task = isTask(child) ? child : undefined;
  return {
    kind: task ? "task" : "subagent",
    id: child.id,
    shortID: shortID(child.id),
    description: title(child.description),
    agent: child.agent && title(child.agent),
    model: child.model && modelName(child.model),
    status: child.status,
    isForked: task?.isForked ?? false,
    resumeCount: task?.resumeCount ?? 0,
    startedAt: child.startedAt,
    endedAt: child.endedAt,
    cost: child.cost,
    tokens: child.tokens,
    error: child.error && translate(child.error.sentence ?? child.error.message),
    nearLimit: task?.nearLimit && { scope: task.nearLimit.scope, percent: percentOf(task.nearLimit) },
    activity: toActivityView(child, folder),
    waiting: task && waitingMessage(task),
    links: task ? linksOf(task, successors) : [],
  };
}

function linksOf(task: Task, successors: readonly Task[]): TaskLink[] {
  const { insteadOf } = task;
  const before: TaskLink[] =
    insteadOf === undefined
      ? []
      : [{ kind: carriesOn(task) ? "continues" : "retries", id: insteadOf, shortID: shortID(insteadOf) }];
  const after = successors.map((next): TaskLink => ({
    kind: carriesOn(next) ? "continued-as" : "retried-as",
    id: next.id,
    shortID: shortID(next.id),
  }));
  return [...before, ...after];
}

/** Whether a task launched in place of another one continues from its conversation. */
function carriesOn({ insteadOf, forkedFrom }: Task): boolean {
  return forkedFrom === insteadOf;
}

function modelName({ providerID, modelID, variant }: ModelRef): string {
  return `${providerID}/${modelID}${variant === undefined ? "" : ` (${variant})`}`;
}

function toActivityView({ progress }: Child, folder: string | undefined): ActivityView | undefined {
  if (!progress) return undefined;
  const { phase, toolCalls, recentTools, lastUpdate, retry } = progress;
  const tool = recentTools.findLast(({ status }) => status === "running" || status === "pending");
  return {
    phase,
    toolCalls,
    tool: tool && { name: title(tool.tool), title: tool.title && title(relativePath(tool.title, folder)) },
    lastUpdate,
    retry,
  };
}

export function perspectiveOf(
  child: Child | undefined,
  messages: readonly Message[],
  folder?: string,
): Perspective {
  const ownSince = child && isTask(child) && child.isForked ? child.createdAt : 0;
  const prompt = messages.find(
    (message) => message.info.role === "user" && message.info.created >= ownSince && !isNotice(message),
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
    interrupted: INTERRUPTIONS.has(name),
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
    case "message": {
      const failure = toErrorEntry(change.info);
      return failure ? put(failure.id, change.info.id, transcript.messages, perspective) : [];
    }
    case "message-removed":
      return [{ type: "remove-message", messageID: change.messageID }];
    case "part": {
      const changes = put(change.part.id, change.part.messageID, transcript.messages, perspective);
      return changes.length > 0 ? changes : [{ type: "remove", id: change.part.id }];
    }
    case "part-removed":
      return [{ type: "remove", id: change.partID }];
    case "text":
      return [{ type: "append", id: change.partID, delta: change.delta }];
  }
}

/** Puts the current state of an entry in its place. Searches from the end, where nearly all changes happen. */
function put(
  id: string,
  messageID: string,
  messages: readonly Message[],
  perspective: Perspective,
): EntryChange[] {
  const at = messages.findLastIndex((message) => message.info.id === messageID);
  const message = messages[at];
  if (!message) return [];
  const entries = entriesOf(message, perspective);
  const index = entries.findIndex((entry) => entry.id === id);
  const entry = entries[index];
  if (!entry) return [];
  let after = entries[index - 1]?.id;
  for (let previous = at - 1; after === undefined && previous >= 0; previous--)
    after = entriesOf(messages[previous]!, perspective).at(-1)?.id;
  return [{ type: "put", entry, after }];
}

/** The texts about requests, the same wherever requests are shown. */
export interface RequestWording {
  title(request: PermissionRequest): string;
  asker(child: Child): string;
  always(request: PermissionRequest): string;
}

/** Whether the child is the session with that ID or one of its descendants. */
export function isWithin(family: Pick<Family, "child">, child: Child, sessionID: string): boolean {
  return child.id === sessionID || ancestors(family, child).includes(sessionID);
}

/**
 * A request as shown in the panel of `sessionID`.
 * @param input the input of the tool call that asks, once known
 */
export function toRequestView(
  { request, child }: OpenRequest,
  sessionID: string,
  wording: RequestWording,
  input?: Readonly<Record<string, unknown>>,
  folder?: string,
): RequestView {
  const { id } = request;
  const asker = child.id === sessionID ? child.agent && visible(child.agent) : wording.asker(child);
  if (request.type === "question")
    return { kind: "question", id, asker, questions: request.questions.map(toQuestionView) };
  const diff = proposedDiff(request);
  const subjects = subjectsOf(request, input, folder);
  return {
    kind: "permission",
    id,
    asker,
    title: wording.title(request),
    subjects,
    reason: requestReason(request, subjects.join("\n"), input),
    diff: diff === undefined ? undefined : excerptOfLines(visible(diff)),
    always: request.always.length > 0 ? wording.always(request) : undefined,
  };
}

/** The answer keeps the agent's own label, while users see the sanitized one. */
function toQuestionView({ question, header, options, ...how }: Question): QuestionView {
  return {
    ...how,
    question: visible(question),
    header: visible(header),
    options: options.map(({ label, description }) => ({
      answer: label,
      label: visible(label),
      description: visible(description),
    })),
  };
}

/**
 * What the request is about, each item once. The patterns of a command are its parts, so the whole command stands for
 * them; it may be known only from the input of the tool call.
 */
function subjectsOf(
  { permission, patterns, metadata }: PermissionRequest,
  toolInput: Readonly<Record<string, unknown>> | undefined,
  folder: string | undefined,
): readonly string[] {
  const command =
    text(metadata["command"]) ?? (permission === "bash" ? text(toolInput?.["command"]) : undefined);
  const input = metadata["input"];
  return [
    ...(command === undefined ? [] : [command]),
    ...patterns
      .filter((pattern) => pattern !== "*" && !command?.includes(pattern))
      .map((pattern) => relativePath(pattern, folder)),
    ...(typeof input === "object" && input !== null ? [JSON.stringify(input, undefined, 2)] : []),
  ].map(visible);
}
