import { percentOf } from "../../engine/limit.ts";
import type { OpenRequest } from "../../engine/engine.ts";
import { isNotice } from "../../engine/notices.ts";
import type { Text } from "../../engine/sentence.ts";
import type {
  Message,
  MessageInfo,
  Part,
  PermissionRequest,
  Question,
  ToolPart,
} from "../../engine/server-model.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import { type ModelRef, shortID } from "../../engine/task.ts";
import type { TranscriptChange } from "../../engine/transcript.ts";
import {
  type ActivityView,
  type Entry,
  type EntryChange,
  type Excerpt,
  type PromptEntry,
  type QuestionView,
  type RequestView,
  type TaskView,
  TOOL_OUTPUT,
  type ToolDetail,
  type ToolEntry,
} from "../../protocol/output.ts";
import { title, visible } from "../plain-text.ts";
import { proposedDiff, requestReason, text } from "../requests/request-facts.ts";
import { ancestors, type Family } from "../tree/family.ts";
import { changeFields, toolDiff } from "./tool-diff.ts";

/** Which messages of a session launched or continued its task. */
export interface Perspective {
  /** Messages before this time are part of the history that a fork inherited. */
  readonly ownSince: number;
  /** The message that launched the task; later prompts are follow-ups. */
  readonly promptMessageID: string | undefined;
}

/** Fields of a tool's input that name one file. */
const FILE_FIELDS: ReadonlySet<string> = new Set(["filePath", "file_path"]);
/** Fields of a tool's input that summarize the call, most descriptive first. */
const TITLE_FIELDS = [
  "description",
  "command",
  "filePath",
  "pattern",
  "query",
  "url",
  "path",
  "name",
  "prompt",
];
const TITLE_LENGTH = 200;
/** Characters of a text shown in the panel; the full text opens as a document. */
const EXCERPT_LENGTH = 20_000;
/** The size of an entry in addition to its text, in characters. */
const ENTRY_SIZE = 200;
/** Names of the errors that the server reports when someone stopped the turn. */
const INTERRUPTIONS: ReadonlySet<string> = new Set(["MessageAbortedError"]);

export function toTaskView(child: Child, translate: (text: Text) => string): TaskView {
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
    activity: toActivityView(child),
  };
}

function modelName({ providerID, modelID, variant }: ModelRef): string {
  return `${providerID}/${modelID}${variant === undefined ? "" : ` (${variant})`}`;
}

function toActivityView({ progress }: Child): ActivityView | undefined {
  if (!progress) return undefined;
  const { phase, toolCalls, recentTools, lastUpdate, retry } = progress;
  const tool = recentTools.findLast(({ status }) => status === "running" || status === "pending");
  return {
    phase,
    toolCalls,
    tool: tool && { name: title(tool.tool), title: tool.title && title(tool.title) },
    lastUpdate,
    retry,
  };
}

export function perspectiveOf(child: Child | undefined, messages: readonly Message[]): Perspective {
  const ownSince = child && isTask(child) && child.isForked ? child.createdAt : 0;
  const prompt = messages.find(
    (message) => message.info.role === "user" && message.info.created >= ownSince && !isNotice(message),
  );
  return { ownSince, promptMessageID: prompt?.info.id };
}

/** The entries of one message in reading order. */
export function entriesOf(message: Message, perspective: Perspective): Entry[] {
  const entries = message.parts.flatMap((part) => toEntry(message, part, perspective) ?? []);
  const failure = toErrorEntry(message.info);
  return failure ? [...entries, failure] : entries;
}

/** The entry for a part; undefined if the part has nothing for users to read. */
function toEntry(message: Message, part: Part, perspective: Perspective): Entry | undefined {
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
      return { kind: "tool", id, messageID, tool: part.tool, title: toolTitle(part), ...toolProgress(part) };
    case "file":
      return { kind: "file", id, messageID, name: part.filename ?? part.mime, mime: part.mime };
    case "other":
      return part.kind === "compaction" ? { kind: "compaction", id, messageID } : undefined;
  }
}

function originOf(message: Message, perspective: Perspective): PromptEntry["origin"] {
  if (isNotice(message)) return "notice";
  if (message.info.created < perspective.ownSince) return "inherited";
  return message.info.id === perspective.promptMessageID ? "prompt" : "follow-up";
}

function toErrorEntry(info: MessageInfo): Entry | undefined {
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

function toolProgress({ state }: ToolPart): Pick<ToolEntry, "status" | "start" | "end"> {
  switch (state.status) {
    case "pending":
      return { status: state.status };
    case "running":
      return { status: state.status, start: state.start };
    case "completed":
    case "error":
      return { status: state.status, start: state.start, end: state.end };
  }
}

/** A one-line summary of the call: the tool's own title, otherwise the most descriptive field of its input. */
function toolTitle({ state }: ToolPart): string | undefined {
  const own = "title" in state ? state.title : undefined;
  const found =
    own || TITLE_FIELDS.map((field) => state.input[field]).find((value) => typeof value === "string");
  if (typeof found !== "string" || found === "") return undefined;
  return title(found).slice(0, TITLE_LENGTH);
}

/** A range of entries, and whether there are others before it. */
export interface Page {
  readonly entries: readonly Entry[];
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
  const newestFirst: Entry[] = [];
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

/** The tool call with that ID. */
export function findTool(messages: readonly Message[], partID: string): ToolPart | undefined {
  for (let index = messages.length - 1; index >= 0; index--) {
    const part = messages[index]!.parts.find(({ id }) => id === partID);
    if (part) return part.type === "tool" ? part : undefined;
  }
  return undefined;
}

export function toToolDetail(part: ToolPart): ToolDetail {
  const output = toolText(part, TOOL_OUTPUT);
  const diff = toolDiff(part);
  const shown = new Set(diff === undefined ? [] : changeFields(part.tool));
  return {
    id: part.id,
    input: Object.entries(part.state.input)
      .filter(([name]) => !shown.has(name))
      .map(([name, value]) => ({
        name,
        value: excerpt(printed(value)),
        isFile: FILE_FIELDS.has(name) && typeof value === "string",
      })),
    output: output === undefined ? undefined : excerpt(output),
    diff: diff === undefined ? undefined : excerptOfLines(visible(diff)),
  };
}

/** The full text of an input field, or of the output ({@link TOOL_OUTPUT}). */
export function toolText({ state }: ToolPart, field: string): string | undefined {
  if (field !== TOOL_OUTPUT)
    return Object.hasOwn(state.input, field) ? printed(state.input[field]) : undefined;
  switch (state.status) {
    case "pending":
      return undefined;
    case "running": {
      const sofar = state.metadata?.["output"];
      return typeof sofar === "string" ? sofar : undefined;
    }
    case "completed":
      return state.output;
    case "error":
      return state.error;
  }
}

/** The path in an input field, if the field names a file. */
export function toolFile(part: ToolPart, field: string): string | undefined {
  const value = FILE_FIELDS.has(field) ? part.state.input[field] : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

function printed(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "");
}

function excerpt(text: string): Excerpt {
  return { text: text.slice(0, EXCERPT_LENGTH), total: text.length };
}

/** Like {@link excerpt}, but cuts only between lines. */
function excerptOfLines(text: string): Excerpt {
  const cut = text.length > EXCERPT_LENGTH ? text.lastIndexOf("\n", EXCERPT_LENGTH) : -1;
  return cut > 0 ? { text: text.slice(0, cut), total: text.length } : excerpt(text);
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
): RequestView {
  const { id } = request;
  const asker = child.id === sessionID ? child.agent && visible(child.agent) : wording.asker(child);
  if (request.type === "question")
    return { kind: "question", id, asker, questions: request.questions.map(toQuestionView) };
  const diff = proposedDiff(request);
  const subjects = subjectsOf(request);
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

/** The patterns, with the command and the input that they stand for if these say more. */
function subjectsOf({ patterns, metadata }: PermissionRequest): readonly string[] {
  const command = text(metadata["command"]);
  const input = metadata["input"];
  return [
    ...(command === undefined || patterns.includes(command) ? [] : [command]),
    ...patterns.filter((pattern) => pattern !== "*"),
    ...(typeof input === "object" && input !== null ? [JSON.stringify(input, undefined, 2)] : []),
  ].map(visible);
}
