import type { RequestAnswer } from "../engine/server-model.ts";
import type { Child } from "../engine/subagent.ts";
import type { Phase, Progress, TokenUsage, ToolUse } from "../engine/task.ts";

export type { RequestAnswer };

/** What the output panel shows of a task, and the messages between it and the extension. Times are milliseconds since 1970. */

/** What the panel is about: a task, or a subagent that somebody else launched, which becomes a task where it is adopted. */
export interface TaskView {
  readonly kind: "task" | "subagent";
  readonly id: string;
  /** The end of the ID, which is what users read. */
  readonly shortID: string;
  readonly description: string;
  /** Missing where the server has not said yet. */
  readonly agent?: string | undefined;
  /** `provider/model`, with its variant if it has one. */
  readonly model?: string | undefined;
  readonly status: Child["status"];
  readonly isForked: boolean;
  readonly resumeCount: number;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** Why it ended in `error`. */
  readonly error?: string | undefined;
  /** The limit that it is near to, its own or that of its batch, and how much of it is used. */
  readonly nearLimit?: { readonly scope: "task" | "batch"; readonly percent: number } | undefined;
  /** Only while the task is active. */
  readonly activity?: ActivityView | undefined;
}

/** What an active task is doing. */
export interface ActivityView {
  readonly phase: Phase;
  readonly toolCalls: number;
  /** The tool at work in phase `tool`. */
  readonly tool?: { readonly name: string; readonly title?: string | undefined } | undefined;
  /** The last update. */
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
  /** `inherited`: the task is a fork and got it with its history; `notice`: the product told of another task. */
  readonly origin: "prompt" | "follow-up" | "inherited" | "notice";
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

/** A tool call, without what went in and came out: that is sent when the user opens it. */
export interface ToolEntry extends EntryBase {
  readonly kind: "tool";
  readonly tool: string;
  readonly title?: string | undefined;
  readonly status: ToolUse["status"];
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
  /** Stopped by someone, so nothing that needs mending. */
  readonly interrupted: boolean;
}

/** The server replaced what came before by a summary, for the model. */
interface CompactionEntry extends EntryBase {
  readonly kind: "compaction";
}

export type Entry =
  PromptEntry | TextEntry | ReasoningEntry | ToolEntry | FileEntry | ErrorEntry | CompactionEntry;

export type EntryChange =
  /** Replaces the entry of that ID. A new one goes after the entry named, or to the front. */
  | { readonly type: "put"; readonly entry: Entry; readonly after: string | undefined }
  | { readonly type: "remove"; readonly id: string }
  | { readonly type: "remove-message"; readonly messageID: string }
  /** Adds to the end of the entry's text. */
  | { readonly type: "append"; readonly id: string; readonly delta: string };

/** Text that may have been cut at its end. */
export interface Excerpt {
  readonly text: string;
  /** Characters before the cut; equal to the text's length when nothing was cut. */
  readonly total: number;
}

export interface ToolDetail {
  readonly id: string;
  readonly input: readonly { readonly name: string; readonly value: Excerpt; readonly isFile: boolean }[];
  /** Missing while there is none yet. */
  readonly output?: Excerpt | undefined;
  /** What the call changed in a file, as a unified diff. */
  readonly diff?: Excerpt | undefined;
}

export interface PermissionView {
  readonly kind: "permission";
  readonly id: string;
  /** Who asks; missing where that is not known. */
  readonly asker?: string | undefined;
  /** What is asked for: `Run a Command`. */
  readonly title: string;
  /** What it is asked for: commands, files, addresses. Never cut: nobody is to allow what they cannot read. */
  readonly subjects: readonly string[];
  /** In the agent's own words. */
  readonly reason?: string | undefined;
  /** What the call would change in files, as a unified diff. */
  readonly diff?: Excerpt | undefined;
  /** What "always" would allow from now on, in words; missing where that is no answer. */
  readonly always?: string | undefined;
}

export interface QuestionView {
  readonly question: string;
  readonly header: string;
  readonly options: readonly {
    /** What is answered where this one is chosen. */
    readonly answer: string;
    readonly label: string;
    readonly description: string;
  }[];
  /** Several options may be chosen. */
  readonly multiple: boolean;
  /** An own answer is welcome. */
  readonly custom: boolean;
}

export interface QuestionsView {
  readonly kind: "question";
  readonly id: string;
  /** Who asks; missing where that is not known. */
  readonly asker?: string | undefined;
  readonly questions: readonly QuestionView[];
}

/** What an agent waits for. */
export type RequestView = PermissionView | QuestionsView;

export interface RefusedPrompt {
  readonly prompt: string;
  readonly error: string;
}

export type ConnectionView = "connected" | "connecting" | "disconnected";

/** From the extension to the panel. */
export type HostMessage =
  /**
   * `translations` are by the English text. `now` lets the page tell elapsed times by the clock that the timestamps come
   * from, which may be another machine's.
   */
  | { readonly type: "setup"; readonly translations: Readonly<Record<string, string>>; readonly now: number }
  | { readonly type: "connection"; readonly connection: ConnectionView }
  | { readonly type: "task"; readonly task: TaskView }
  /** There is no such task (any more). */
  | { readonly type: "gone" }
  /**
   * The newest entries, in place of all that was sent; with `before`, those that go before it. `earlier` says whether there
   * are others before them.
   */
  | {
      readonly type: "conversation";
      readonly entries: readonly Entry[];
      readonly earlier: boolean;
      readonly before?: string | undefined;
    }
  | { readonly type: "changes"; readonly changes: readonly EntryChange[] }
  | { readonly type: "load-failed"; readonly message: string }
  | { readonly type: "tool-detail"; readonly detail: ToolDetail }
  /** How `resume` went: the prompt was taken, unless it comes back with the reason why not. */
  | { readonly type: "resume-done"; readonly refused?: RefusedPrompt | undefined }
  /** Whether a retry is under way. */
  | { readonly type: "retrying"; readonly retrying: boolean }
  /** All that waits for the user now, the oldest first. */
  | { readonly type: "requests"; readonly requests: readonly RequestView[] }
  /** The reply to that request was not taken. */
  | { readonly type: "reply-failed"; readonly id: string; readonly error: string }
  /** Something small that the user is to know, and soon forget. */
  | { readonly type: "note"; readonly text: string };

/** From the panel to the extension. */
export type PanelMessage =
  /** The page listens; everything is to be sent. */
  | { readonly type: "ready" }
  /** Asks for the entries before the one named. */
  | { readonly type: "earlier"; readonly before: string }
  | { readonly type: "tool-detail"; readonly id: string }
  /** Opens what a tool call got or gave as a document, complete and searchable; the file, where the field names one. */
  | { readonly type: "open-field"; readonly id: string; readonly field: string }
  /** Opens what a tool call changed, or what a request would change, as a document: complete. */
  | { readonly type: "open-diff"; readonly id: string }
  /** Opens a file that the agent wrote of: a path, with `:line` or `:line:column` if that was said. */
  | { readonly type: "open-path"; readonly path: string }
  | { readonly type: "open-link"; readonly url: string }
  | { readonly type: "open-transcript" }
  | { readonly type: "copy-result" }
  | { readonly type: "resume"; readonly prompt: string }
  /** Runs a command of the extension on the task. */
  | { readonly type: "run"; readonly command: PanelCommand }
  /** Answers the request of that ID. */
  | { readonly type: "reply"; readonly id: string; readonly reply: RequestAnswer };

/** Commands of the extension that the panel runs on its task. */
export const PANEL_COMMANDS = [
  "adopt",
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

/** One handler for each kind of message: leaving one out does not compile. */
export type Handlers<M extends Typed> = {
  readonly [T in M["type"]]: (message: Extract<M, { readonly type: T }>) => void;
};

export function dispatch<M extends Typed>(handlers: Handlers<M>, message: M): void {
  const handle = handlers[message.type as M["type"]] as (message: M) => void;
  handle(message);
}
