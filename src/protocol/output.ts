import type { RequestAnswer } from "../engine/server-model.ts";
import type { Child } from "../engine/subagent.ts";
import type { Phase, Progress, TaskWorktree, TokenUsage, ToolUse } from "../engine/task.ts";

export type { RequestAnswer };

/** The data of the output panel, and its messages to and from the extension. Times are milliseconds since 1970. */

/** What the panel shows: a task, or a subagent launched elsewhere, which becomes a task when it is adopted. */
export interface TaskView {
  readonly kind: "task" | "subagent";
  readonly id: string;
  /** The end of the ID, as shown to users. */
  readonly shortID: string;
  readonly description: string;
  /** Missing until the server reports it. */
  readonly agent?: string | undefined;
  /** `provider/model`, followed by the variant if there is one. */
  readonly model?: string | undefined;
  readonly status: Child["status"];
  readonly isForked: boolean;
  /** What became of the work in its own worktree, `open` until the user has decided. Undefined if it has none. */
  readonly worktree?: NonNullable<TaskWorktree["outcome"]> | "open" | undefined;
  readonly resumeCount: number;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** The cause of the status `error`. */
  readonly error?: string | undefined;
  /** The limit that is nearly reached, of the task or of its batch, and the percentage used. */
  readonly nearLimit?: { readonly scope: "task" | "batch"; readonly percent: number } | undefined;
  /** Only while the task is active. */
  readonly activity?: ActivityView | undefined;
  /** The message that is sent as a follow-up once the task has completed. */
  readonly waiting?: string | undefined;
  /** The failed or cancelled task that this one was launched in place of, and those launched in place of this one. */
  readonly links: readonly TaskLink[];
}

export interface TaskLink {
  readonly kind: "continues" | "retries" | "continued-as" | "retried-as";
  readonly id: string;
  readonly shortID: string;
}

/** What an active task is doing. */
export interface ActivityView {
  readonly phase: Phase;
  readonly toolCalls: number;
  /** The tool running in phase `tool`. */
  readonly tool?: { readonly name: string; readonly title?: string | undefined } | undefined;
  /** The time of the last update. */
  readonly lastUpdate: number;
  readonly retry?: Progress["retry"];
}

interface EntryBase {
  /** Unique within the conversation. */
  readonly id: string;
  readonly messageID: string;
}

export interface PromptEntry extends EntryBase {
  readonly kind: "prompt";
  /**
   * `message`: sent while the task was running; `inherited`: part of the history that a fork took over; `notice`: a
   * message from the extension about another task.
   */
  readonly origin: "prompt" | "follow-up" | "message" | "inherited" | "notice";
  readonly text: string;
  readonly at: number;
}

export interface TextEntry extends EntryBase {
  readonly kind: "text";
  /** Markdown. */
  readonly text: string;
}

export interface ReasoningEntry extends EntryBase {
  readonly kind: "reasoning";
  /** Markdown. */
  readonly text: string;
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

/** A tool call without its input and output, which are sent when the user expands it. */
export interface ToolEntry extends EntryBase {
  readonly kind: "tool";
  readonly tool: string;
  readonly title?: string | undefined;
  readonly status: ToolUse["status"];
  /** Whether the call launched a session that can be opened. */
  readonly hasSession: boolean;
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

export interface FileEntry extends EntryBase {
  readonly kind: "file";
  readonly name: string;
  readonly mime: string;
}

export interface ErrorEntry extends EntryBase {
  readonly kind: "error";
  readonly message: string;
  /** Cancelled by someone rather than failed. */
  readonly interrupted: boolean;
}

/** The server replaced the earlier messages by a summary in what it sends to the model. */
interface CompactionEntry extends EntryBase {
  readonly kind: "compaction";
}

export type ConversationEntry =
  PromptEntry | TextEntry | ReasoningEntry | ToolEntry | FileEntry | ErrorEntry | CompactionEntry;

export type EntryChange =
  /** Replaces the entry with the same ID; a new entry goes after the entry `after`, or to the front. */
  | { readonly type: "put"; readonly entry: ConversationEntry; readonly after: string | undefined }
  | { readonly type: "remove"; readonly id: string }
  | { readonly type: "remove-message"; readonly messageID: string }
  /** Appends to the entry's text. */
  | { readonly type: "append"; readonly id: string; readonly delta: string };

/** A line of a conversation that contains the text searched for. */
export interface Hit {
  /** The ID of the entry. */
  readonly entryID: string;
  /** How many matches the entry has before this one. */
  readonly nth: number;
  /** The line, or a part of it that begins shortly before the match. */
  readonly line: string;
}

/** Text that may be cut at its end. */
export interface Excerpt {
  readonly text: string;
  /** Characters before the cut; equals the text's length if nothing was cut. */
  readonly total: number;
}

export interface ToolDetail {
  readonly id: string;
  readonly input: readonly { readonly name: string; readonly value: Excerpt; readonly isFile: boolean }[];
  /** Missing until there is output. */
  readonly output?: Excerpt | undefined;
  /** What the call changed in a file, as a unified diff. */
  readonly diff?: Excerpt | undefined;
}

export interface PermissionView {
  readonly kind: "permission";
  readonly id: string;
  /** The agent that asks; missing if unknown. */
  readonly asker?: string | undefined;
  /** The permission asked for, such as `Run a Command`. */
  readonly title: string;
  /** The commands, files or addresses it is about. Never cut: users must be able to read what they allow. */
  readonly subjects: readonly string[];
  /** In the agent's own words. */
  readonly reason?: string | undefined;
  /** What the call would change in files, as a unified diff. */
  readonly diff?: Excerpt | undefined;
  /** What the answer "always" would allow from now on, in words; missing if "always" can't be answered. */
  readonly always?: string | undefined;
}

export interface QuestionView {
  readonly question: string;
  readonly header: string;
  readonly options: readonly {
    /** The answer sent if this option is chosen. */
    readonly answer: string;
    readonly label: string;
    readonly description: string;
  }[];
  /** Whether several options may be chosen. */
  readonly multiple: boolean;
  /** Whether the user may enter an answer of their own. */
  readonly custom: boolean;
}

export interface QuestionsView {
  readonly kind: "question";
  readonly id: string;
  /** The agent that asks; missing if unknown. */
  readonly asker?: string | undefined;
  readonly questions: readonly QuestionView[];
}

/** A request that an agent waits for. */
export type RequestView = PermissionView | QuestionsView;

/**
 * What becomes of a message: it resumes a completed task, is sent to a running one, waits until that has completed, or
 * continues a failed or cancelled one as a new task, for which it may be empty.
 */
export const SENDING = ["resume", "now", "after", "continue"] as const;
export type Sending = (typeof SENDING)[number];

/** The longest message to a task, in characters. */
export const MAX_MESSAGE = 1_000_000;
/** The longest text of an answer to a request, in characters. */
export const MAX_ANSWER = 100_000;

/** A text that returns to the box: a refused message, or one that was withdrawn. */
export interface ReturnedText {
  readonly text: string;
  /** Why the message was refused. */
  readonly error?: string | undefined;
}

/** A match in a conversation. */
export interface FoundAt {
  readonly query: string;
  readonly entryID: string;
  /** The number of matches before it in its entry, if they are counted as the page does. */
  readonly nth: number;
}

/** An image as a `data:` address, or why it isn't shown. */
export interface ImageView {
  readonly data?: string;
  readonly problem?: string;
}

export type ConnectionView = "connected" | "connecting" | "disconnected";

/** From the extension to the panel. */
export type HostMessage =
  /**
   * `translations` are keyed by the English text. `now` lets the page compute elapsed times by the clock of the
   * timestamps, which may be another machine's.
   */
  | { readonly type: "setup"; readonly translations: Readonly<Record<string, string>>; readonly now: number }
  | { readonly type: "connection"; readonly connection: ConnectionView }
  | { readonly type: "task"; readonly task: TaskView }
  /** The task doesn't exist (any more). */
  | { readonly type: "gone" }
  /**
   * The newest entries, replacing everything sent so far; with `before`, the entries that precede that one. `earlier`
   * says whether there are even older entries.
   */
  | {
      readonly type: "conversation";
      readonly entries: readonly ConversationEntry[];
      readonly earlier: boolean;
      readonly before?: string | undefined;
    }
  | { readonly type: "changes"; readonly changes: readonly EntryChange[] }
  | { readonly type: "load-failed"; readonly message: string }
  | { readonly type: "tool-detail"; readonly detail: ToolDetail }
  /** The result of `send`. A refused message comes back. */
  | { readonly type: "send-done"; readonly returned?: ReturnedText | undefined }
  /** The result of `withdraw`. */
  | { readonly type: "withdrawn"; readonly returned: ReturnedText }
  /** Whether the extension is retrying the task. */
  | { readonly type: "retrying"; readonly retrying: boolean }
  /** All requests that wait for the user, oldest first. */
  | { readonly type: "requests"; readonly requests: readonly RequestView[] }
  /** The reply to the request couldn't be sent. */
  | { readonly type: "reply-failed"; readonly id: string; readonly error: string }
  | ({ readonly type: "image"; readonly path: string } & ImageView)
  /** A short message that the page shows for a moment. */
  | { readonly type: "note"; readonly text: string }
  /** Shows the box for finding text, with the text found at `at` if there is one. */
  | { readonly type: "find"; readonly at?: FoundAt | undefined }
  /** The state of another page of the task, which gives way to this one. */
  | { readonly type: "left"; readonly state: unknown }
  /** How often the details of tool calls contain the text, by entry ID. */
  | {
      readonly type: "found-in-tools";
      readonly query: string;
      readonly counts: Readonly<Record<string, number>>;
    };

/** From the panel to the extension. */
export type PanelMessage =
  /** The page is listening and needs the complete state. */
  | { readonly type: "ready" }
  /** Requests the entries before the named one. */
  | { readonly type: "earlier"; readonly before: string }
  | { readonly type: "tool-detail"; readonly id: string }
  /** Opens an input field or the output of a tool call as a document; opens the file if the field names one. */
  | { readonly type: "open-field"; readonly id: string; readonly field: string }
  /** Opens the complete diff of a tool call or of a request as a document. */
  | { readonly type: "open-diff"; readonly id: string }
  /** Opens a file that the agent mentioned: a path, optionally with `:line` or `:line:column`. */
  | { readonly type: "open-path"; readonly path: string }
  /** Requests an image of the workspace. */
  | { readonly type: "image"; readonly path: string }
  | { readonly type: "open-link"; readonly url: string }
  /** Opens the output of the session that a tool call launched. */
  | { readonly type: "open-session"; readonly id: string }
  /** Searches the details of tool calls, which the page doesn't have. */
  | { readonly type: "find-in-tools"; readonly query: string }
  /** Copies the whole conversation. */
  | { readonly type: "copy-conversation" }
  | { readonly type: "open-transcript" }
  | { readonly type: "copy-result" }
  | { readonly type: "send"; readonly text: string; readonly how: Sending }
  /** Takes back the message that waits. */
  | { readonly type: "withdraw" }
  /** The user has begun to write in the page. */
  | { readonly type: "keep" }
  /** Opens the output of a linked task. */
  | { readonly type: "open-task"; readonly id: string }
  /** Runs a command of the extension on the task. */
  | { readonly type: "run"; readonly command: PanelCommand }
  /** Answers the request with that ID. */
  | { readonly type: "reply"; readonly id: string; readonly reply: RequestAnswer };

/** What the script of a page sends. */
export interface PageMessage {
  /** The task that the page shows; empty in the overview. */
  readonly taskID: string;
  readonly message: PanelMessage;
}

/** A message from the conversation to the page. */
export type ConversationMessage = Extract<
  HostMessage,
  { readonly type: "conversation" | "changes" | "tool-detail" | "found-in-tools" }
>;

/** What the page asks the conversation: the newest entries first. */
export type ConversationQuestion =
  | { readonly type: "newest" }
  | Extract<PanelMessage, { readonly type: "earlier" | "tool-detail" | "find-in-tools" }>;

/** What the page opens of the conversation. */
export type ConversationLink = Extract<
  PanelMessage,
  { readonly type: "open-field" | "open-diff" | "open-session" | "open-transcript" }
>;

/** Where a {@link ConversationLink} leads. The extension in a document's `name` determines the language. */
export type LinkTarget =
  | { readonly type: "document"; readonly name: string; readonly text: string }
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "session"; readonly id: string };

/** Commands of the extension that the panel runs on its task. */
export const PANEL_COMMANDS = [
  "adopt",
  "bringBack",
  "cancel",
  "connect",
  "fork",
  "openInTerminal",
  "retry",
  "showChanges",
] as const;
export type PanelCommand = (typeof PANEL_COMMANDS)[number];

/** Names the output of a tool call in `open-field`; any other name is a field of its input. */
export const TOOL_OUTPUT = "";

interface Typed {
  readonly type: string;
}

/** One handler for each type of message; a missing handler is a compile error. */
export type Handlers<M extends Typed> = {
  readonly [T in M["type"]]: (message: Extract<M, { readonly type: T }>) => void;
};

export function dispatch<M extends Typed>(handlers: Handlers<M>, message: M): void {
  const handle = handlers[message.type as M["type"]] as (message: M) => void;
  handle(message);
}
