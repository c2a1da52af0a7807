/** What the output panel shows of a task, and the messages between it and the extension. Times are milliseconds since 1970. */

export interface TaskView {
  readonly id: string;
  /** The end of the ID, which is what people read. */
  readonly shortID: string;
  readonly description: string;
  readonly agent: string;
  /** `provider/model`, with its variant if it has one. */
  readonly model?: string | undefined;
  readonly status: "running" | "completed" | "error" | "cancelled" | "resumed";
  readonly isForked: boolean;
  readonly resumeCount: number;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: TokensView;
  /** Why it ended in `error`. */
  readonly error?: string | undefined;
  /** Only while the task is active. */
  readonly activity?: ActivityView | undefined;
  readonly canFork: boolean;
}

export interface TokensView {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** What an active task is doing. */
export interface ActivityView {
  readonly phase:
    | "queued"
    | "starting"
    | "thinking"
    | "streaming"
    | "tool"
    | "retrying"
    | "needs-permission"
    | "needs-answer"
    | "stalled";
  readonly toolCalls: number;
  /** The tool at work in phase `tool`. */
  readonly tool?: { readonly name: string; readonly title?: string | undefined } | undefined;
  /** The last sign of life. */
  readonly lastUpdate: number;
  readonly retry?: { readonly attempt: number; readonly message: string; readonly next: number } | undefined;
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

/** A tool call, without what went in and came out: that is sent when the person opens it. */
export interface ToolEntry extends EntryBase {
  readonly kind: "tool";
  readonly tool: string;
  readonly title?: string | undefined;
  readonly status: "pending" | "running" | "completed" | "error";
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
export interface CompactionEntry extends EntryBase {
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

export type ConnectionView = "connected" | "connecting" | "disconnected";

/** From the extension to the panel. */
export type HostMessage =
  /** `now` lets the page tell elapsed times by the clock that the timestamps come from, which may be another machine's. */
  | { readonly type: "setup"; readonly strings: OutputStrings; readonly locale: string; readonly now: number }
  | { readonly type: "connection"; readonly connection: ConnectionView }
  | { readonly type: "task"; readonly task: TaskView }
  /** There is no such task (any more). */
  | { readonly type: "gone" }
  /** The newest entries; `earlier` says whether there are others before them. */
  | { readonly type: "conversation"; readonly entries: readonly Entry[]; readonly earlier: boolean }
  /** Answers `earlier`: entries that go before all that was sent. */
  | { readonly type: "earlier"; readonly entries: readonly Entry[]; readonly earlier: boolean }
  | { readonly type: "changes"; readonly changes: readonly EntryChange[] }
  | { readonly type: "load-failed"; readonly message: string }
  | { readonly type: "tool-detail"; readonly detail: ToolDetail }
  /** How `resume` went; `error` says why the prompt was not taken. */
  | { readonly type: "resume-done"; readonly error?: string | undefined };

/** From the panel to the extension. */
export type PanelMessage =
  /** The page listens now; everything is to be sent. */
  | { readonly type: "ready" }
  | { readonly type: "reload" }
  /** Asks for the entries before the one named. */
  | { readonly type: "earlier"; readonly before: string }
  | { readonly type: "tool-detail"; readonly id: string }
  /** Opens what a tool call got or gave as a document: complete, searchable. */
  | { readonly type: "open-tool-text"; readonly id: string; readonly field: string }
  /** Opens the file that the tool call names in that field of its input. */
  | { readonly type: "open-tool-file"; readonly id: string; readonly field: string }
  | { readonly type: "open-link"; readonly url: string }
  | { readonly type: "open-transcript" }
  | { readonly type: "copy-result" }
  | { readonly type: "cancel" }
  | { readonly type: "resume"; readonly prompt: string }
  | { readonly type: "fork" }
  | { readonly type: "retry" }
  | { readonly type: "answer" }
  | { readonly type: "connect" };

/** Names the output of a tool call in `open-tool-text`; any other name is a field of its input. */
export const TOOL_OUTPUT = "";

/** Everything that people read in the panel. `{0}`, `{1}` stand for values. */
export interface OutputStrings {
  readonly status: Readonly<Record<TaskView["status"], string>>;
  readonly phase: Readonly<Record<ActivityView["phase"], string>>;
  readonly toolStatus: Readonly<Record<ToolEntry["status"], string>>;
  readonly origin: Readonly<Record<PromptEntry["origin"], string>>;
  readonly resumedMark: string;
  readonly forkedMark: string;
  readonly agent: string;
  readonly model: string;
  readonly duration: string;
  readonly cost: string;
  readonly tokens: string;
  readonly tokensInput: string;
  readonly tokensOutput: string;
  readonly tokensReasoning: string;
  readonly tokensCacheRead: string;
  readonly tokensCacheWrite: string;
  readonly taskID: string;
  readonly conversation: string;
  readonly toolRunning: string;
  readonly toolRunningTitled: string;
  readonly retryIn: string;
  readonly silentFor: string;
  readonly toolCall: string;
  readonly toolCalls: string;
  readonly reasoning: string;
  readonly reasoningFor: string;
  readonly reasoningNow: string;
  readonly input: string;
  readonly output: string;
  readonly changes: string;
  readonly noInput: string;
  readonly noOutput: string;
  readonly outputPending: string;
  readonly showAll: string;
  readonly openFile: string;
  readonly attachment: string;
  readonly interrupted: string;
  readonly failed: string;
  readonly errorRemedy: string;
  readonly compaction: string;
  readonly copyCode: string;
  readonly copied: string;
  readonly cancel: string;
  readonly copyResult: string;
  readonly openTranscript: string;
  readonly fork: string;
  readonly retry: string;
  readonly answer: string;
  readonly connect: string;
  readonly reload: string;
  readonly jumpToLatest: string;
  readonly loading: string;
  readonly loadingEarlier: string;
  readonly empty: string;
  readonly emptyQueued: string;
  readonly emptyDisconnected: string;
  readonly loadFailed: string;
  readonly disconnected: string;
  readonly connecting: string;
  readonly gone: string;
  readonly goneRemedy: string;
  readonly resumeLabel: string;
  readonly resumePlaceholder: string;
  readonly resume: string;
  readonly resumeHint: string;
  readonly resumeFailed: string;
}
