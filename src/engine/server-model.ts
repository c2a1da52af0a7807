import type { ModelRef, RecordReading, TokenUsage } from "./task.ts";

/** A conversation on the server. Times are milliseconds since 1970. */
export interface Session {
  readonly id: string;
  readonly title: string;
  readonly directory: string;
  readonly parentID?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  readonly created: number;
  readonly updated: number;
  readonly archived?: number | undefined;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** The task that this session is, if it is one. */
  readonly task: RecordReading;
}

export type SessionStatus =
  | { readonly type: "busy" }
  | { readonly type: "idle" }
  /** The model refused for now; `next` is when it is asked again (milliseconds since 1970). */
  | { readonly type: "retry"; readonly attempt: number; readonly message: string; readonly next: number };

/** An error as the server reports it: `name` is its type (`APIError`, `MessageAbortedError`, …). */
export interface AgentError {
  readonly name: string;
  readonly message: string;
}

export interface UserMessageInfo {
  readonly role: "user";
  readonly id: string;
  readonly sessionID: string;
  readonly created: number;
  readonly agent: string;
  readonly model?: ModelRef | undefined;
}

export interface AssistantMessageInfo {
  readonly role: "assistant";
  readonly id: string;
  readonly sessionID: string;
  /** The user message that it answers. */
  readonly parentID: string;
  readonly created: number;
  /** Missing while the model still works on this message. */
  readonly completed?: number | undefined;
  readonly agent: string;
  readonly model: ModelRef;
  /** Why the model stopped: `stop`, `tool-calls`, `length`, … */
  readonly finish?: string | undefined;
  readonly error?: AgentError | undefined;
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** A summary written by compaction, not an answer. */
  readonly summary: boolean;
}

export type MessageInfo = UserMessageInfo | AssistantMessageInfo;

interface PartBase {
  readonly id: string;
  readonly sessionID: string;
  readonly messageID: string;
}

export interface TextPart extends PartBase {
  readonly type: "text";
  readonly text: string;
  /** Reaches the model, hidden from users. */
  readonly synthetic: boolean;
  /** Shown to users and kept from the model. */
  readonly ignored?: boolean | undefined;
  /** When the model finished writing it; missing while it streams (and for text that users wrote). */
  readonly end?: number | undefined;
  readonly start?: number | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

interface ReasoningPart extends PartBase {
  readonly type: "reasoning";
  readonly text: string;
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

export type ToolState =
  | { readonly status: "pending"; readonly input: Readonly<Record<string, unknown>> }
  | {
      readonly status: "running";
      readonly input: Readonly<Record<string, unknown>>;
      readonly title?: string | undefined;
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
      readonly start: number;
    }
  | {
      readonly status: "completed";
      readonly input: Readonly<Record<string, unknown>>;
      readonly output: string;
      readonly title: string;
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
      readonly start: number;
      readonly end: number;
    }
  | {
      readonly status: "error";
      readonly input: Readonly<Record<string, unknown>>;
      readonly error: string;
      /** A subagent was refused because the server's configuration allows none so deep. */
      readonly isTooDeep?: boolean | undefined;
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
      readonly start: number;
      readonly end: number;
    };

export interface ToolPart extends PartBase {
  readonly type: "tool";
  readonly tool: string;
  readonly callID: string;
  readonly state: ToolState;
  /** Of an event: what the call reads, or has written; undefined: nothing that it names. */
  readonly files?: FileUse | undefined;
}

/** Files that a tool call names. */
export interface FileUse {
  readonly access: "read" | "write";
  /** Absolute ones. */
  readonly paths: readonly string[];
}

export interface FilePart extends PartBase {
  readonly type: "file";
  readonly mime: string;
  readonly filename?: string | undefined;
  readonly url: string;
}

/** A part that the engine has no use for: step marks, patches, snapshots, compaction marks, … */
export interface OtherPart extends PartBase {
  readonly type: "other";
  readonly kind: string;
  /** Of a compaction mark: the first message before it that is kept as it was, beside the summary of what came earlier. */
  readonly tailStartID?: string | undefined;
}

export type Part = TextPart | ReasoningPart | ToolPart | FilePart | OtherPart;

export interface Message {
  readonly info: MessageInfo;
  readonly parts: readonly Part[];
}

/** What a file held at some time, as far as the server can tell. */
export type FileContent =
  | { readonly kind: "text"; readonly text: string }
  /** The changed places only, with a few lines around each. */
  | { readonly kind: "excerpt"; readonly text: string }
  /** There was no such file. */
  | { readonly kind: "absent" }
  | { readonly kind: "binary" }
  | { readonly kind: "unknown" };

/** A file as it was before a session changed it for the first time, and as it left it. */
export interface FileChange {
  /** Absolute. */
  readonly path: string;
  readonly before: FileContent;
  readonly after: FileContent;
  /**
   * The file changed while the session ran a command, and another session ran one as well: which of them changed it
   * cannot be told.
   */
  readonly isDoubtful: boolean;
  /** Somebody else, a user or another session, changed the file as well between `before` and `after`. */
  readonly isMixed: boolean;
  /** The sessions among those; none where only others did. */
  readonly mixedWith: readonly string[];
  /** Other sessions that are at work now and have changed the file, or may have. */
  readonly workedOnBy: readonly string[];
}

export interface SessionChanges {
  readonly files: readonly FileChange[];
  /** False: the server keeps no snapshots of the folder, so what commands changed is not among the files. */
  readonly hasSnapshots: boolean;
}

export interface PromptPart {
  /** Given where sending twice must not add a second part. */
  readonly id?: string | undefined;
  readonly text: string;
  /** Hidden from users. */
  readonly synthetic?: boolean | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * A file that goes with a prompt. The server reads a text file, the names in a folder or a picture when it takes the
 * prompt, and tells the model what it could not read.
 */
export interface PromptFile {
  /** A `file:` address, `?start=3&end=9` for some of its lines (from 1, both included), or a `data:` one. */
  readonly url: string;
  /** `text/plain`, `application/x-directory`, or what a picture is. */
  readonly mime: string;
  /** What users read. */
  readonly filename?: string | undefined;
}

export interface Prompt {
  readonly messageID: string;
  /** Always sent: left out, the server would overwrite the session's agent with its default one. */
  readonly agent: string;
  readonly model?: ModelRef | undefined;
  readonly parts: readonly PromptPart[];
  readonly files?: readonly PromptFile[] | undefined;
  /** Store only; nothing runs. */
  readonly noReply?: boolean | undefined;
}

export interface PermissionRule {
  readonly permission: string;
  readonly pattern: string;
  readonly action: "allow" | "deny" | "ask";
}

export interface AgentInfo {
  readonly name: string;
  readonly description?: string | undefined;
  readonly mode: "primary" | "subagent" | "all";
  /** Meant for the server's own use. */
  readonly hidden: boolean;
  readonly model?: ModelRef | undefined;
  /** Those of its rules that a session's follow; see `permissions.ts`. */
  readonly permission: readonly PermissionRule[];
}

export interface ModelInfo {
  readonly ref: ModelRef;
  readonly name: string;
  readonly provider: string;
  /** Tokens. */
  readonly contextLimit?: number | undefined;
}

export interface PermissionRequest {
  readonly type: "permission";
  readonly id: string;
  readonly sessionID: string;
  /** What is asked for: `bash`, `edit`, `external_directory`, … */
  readonly permission: string;
  readonly patterns: readonly string[];
  /** The patterns that the answer "always" would allow from now on. */
  readonly always: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The tool call that asks. */
  readonly call?: { readonly messageID: string; readonly callID: string } | undefined;
}

export interface Question {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiple: boolean;
  /** An own answer, not among the options, is welcome. */
  readonly custom: boolean;
}

export interface QuestionRequest {
  readonly type: "question";
  readonly id: string;
  readonly sessionID: string;
  readonly questions: readonly Question[];
}

export type PendingRequest = PermissionRequest | QuestionRequest;

export type RequestAnswer =
  | {
      readonly type: "permission";
      readonly reply: "once" | "always" | "reject";
      readonly message?: string | undefined;
    }
  /** One list of labels per question. */
  | { readonly type: "question"; readonly answers: readonly (readonly string[])[] }
  | { readonly type: "dismiss" };

/** What the server tells while it runs. */
export type ServerEvent =
  | SessionEvent
  /** Nothing happened for a while, and the server is there. */
  | { readonly type: "heartbeat" };

/** What happens in one session. */
export type SessionEvent =
  | { readonly type: "session-changed"; readonly session: Session }
  | { readonly type: "session-deleted"; readonly sessionID: string }
  | { readonly type: "session-status"; readonly sessionID: string; readonly status: SessionStatus }
  | { readonly type: "session-error"; readonly sessionID: string; readonly error: AgentError }
  | { readonly type: "message-changed"; readonly info: MessageInfo }
  | { readonly type: "message-removed"; readonly sessionID: string; readonly messageID: string }
  | { readonly type: "part-changed"; readonly part: Part }
  | {
      readonly type: "part-removed";
      readonly sessionID: string;
      readonly messageID: string;
      readonly partID: string;
    }
  | {
      readonly type: "part-delta";
      readonly sessionID: string;
      readonly messageID: string;
      readonly partID: string;
      readonly field: string;
      readonly delta: string;
    }
  | { readonly type: "request-asked"; readonly request: PendingRequest }
  | { readonly type: "request-closed"; readonly sessionID: string; readonly requestID: string };

/** The session that an event is about. */
export function sessionOf(event: SessionEvent): string {
  switch (event.type) {
    case "session-changed":
      return event.session.id;
    case "message-changed":
      return event.info.sessionID;
    case "part-changed":
      return event.part.sessionID;
    case "request-asked":
      return event.request.sessionID;
    default:
      return event.sessionID;
  }
}
