import type { ModelRef, RecordReading, TokenUsage } from "./task.ts";

/** A session on the server. Times are in milliseconds since 1970. */
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
  /** In US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** The session's own rules, without those of its agent. Undefined if they can't be understood. */
  readonly permission: readonly PermissionRule[] | undefined;
  /** What the user undid. It stays stored until the next prompt, but models don't see it. */
  readonly undoneFrom?: Undone | undefined;
  /** The task record of this session, if it is a task. */
  readonly task: RecordReading;
}

/** The first message that was undone, or that message's first undone part. */
export interface Undone {
  readonly messageID: string;
  readonly partID?: string | undefined;
}

export type SessionStatus =
  | { readonly type: "busy" }
  | { readonly type: "idle" }
  /** The model is unavailable. `next` is the time of the next attempt (milliseconds since 1970). */
  | { readonly type: "retry"; readonly attempt: number; readonly message: string; readonly next: number };

/** The name of the error of a turn that someone stopped. */
export const ABORTED = "Aborted";

/** An error as the server reports it: `name` is its type (`APIError`, …), or {@link ABORTED}. */
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
  /** The ID of the user message that this message answers. */
  readonly parentID: string;
  readonly created: number;
  /** Missing while the model is still writing this message. */
  readonly completed?: number | undefined;
  readonly agent: string;
  readonly model: ModelRef;
  /**
   * Why the model stopped: to call tools, because it was cut off by a limit or its provider, or for another reason. Missing
   * if it was interrupted.
   */
  readonly finish?: "tools" | "cut" | "end" | undefined;
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
  /** Sent to the model, but hidden from users. */
  readonly synthetic: boolean;
  /** Shown to users, but not sent to the model. */
  readonly ignored?: boolean | undefined;
  /** When the model finished writing it. Missing while it streams, and for text by users. */
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
      /** Images and documents that belong to the output. */
      readonly attachments?: readonly AttachedFile[] | undefined;
      /** Set if models are no longer sent the output. */
      readonly isCleared?: boolean | undefined;
      readonly title: string;
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
      readonly start: number;
      readonly end: number;
    }
  | {
      readonly status: "error";
      readonly input: Readonly<Record<string, unknown>>;
      readonly error: string;
      /** What the tool had returned when someone stopped it. Models get this in place of the error. */
      readonly partialOutput?: string | undefined;
      /**
       * Why the server refused the call, if it did: a user rejected its permission or dismissed its question, or the
       * server's configuration does not allow subagents that deep.
       */
      readonly refused?: "by-user" | "too-deep" | undefined;
      readonly metadata?: Readonly<Record<string, unknown>> | undefined;
      readonly start: number;
      readonly end: number;
    };

export interface ToolPart extends PartBase {
  readonly type: "tool";
  readonly tool: string;
  readonly callID: string;
  readonly state: ToolState;
  /** For a call of the server's own tool for subagents: the session that it launched, once there is one. */
  readonly subagent?: { readonly sessionID: string | undefined } | undefined;
  /** In events only: the files that the call reads or has written. Undefined if it does neither. */
  readonly files?: FileUse | undefined;
}

/** The files that a tool call reads or has written. */
export interface FileUse {
  readonly access: "read" | "write";
  /** Absolute paths. Empty for a command, which may have written any file. */
  readonly paths: readonly string[];
}

export interface AttachedFile {
  readonly mime: string;
  readonly filename?: string | undefined;
  readonly url: string;
}

export interface FilePart extends PartBase, AttachedFile {
  readonly type: "file";
}

/** A part that the engine does not use: step marks, patches, snapshots, compaction marks, … */
export interface OtherPart extends PartBase {
  readonly type: "other";
  readonly kind: string;
  /** For a compaction mark: the first earlier message that is kept beside the summary. */
  readonly tailStartID?: string | undefined;
}

export type Part = TextPart | ReasoningPart | ToolPart | FilePart | OtherPart;

export interface Message {
  readonly info: MessageInfo;
  readonly parts: readonly Part[];
}

/** The content of a file at some time, as far as the server knows. */
export type FileContent =
  | { readonly kind: "text"; readonly text: string }
  /** Only the changed places, with a few lines around each. */
  | { readonly kind: "excerpt"; readonly text: string }
  /** The file did not exist. */
  | { readonly kind: "absent" }
  | { readonly kind: "binary" }
  | { readonly kind: "unknown" };

/** A file before a session first changed it, and after its last change. */
export interface FileChange {
  /** Absolute. */
  readonly path: string;
  readonly before: FileContent;
  readonly after: FileContent;
  /**
   * The file changed while this session and another one both ran commands, so it is unknown which of them changed it.
   */
  readonly isDoubtful: boolean;
  /** Whether a user or another session also changed the file between `before` and `after`. */
  readonly isMixed: boolean;
  /** The other sessions that changed it. Empty if only others, such as users, did. */
  readonly mixedWith: readonly string[];
  /** Other running sessions that have changed the file, or may have. */
  readonly workedOnBy: readonly string[];
}

/** A file, and a period in which the user saved it once or several times, in milliseconds since 1970. */
export interface UserSave {
  /** Absolute, without links. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export interface SessionChanges {
  readonly files: readonly FileChange[];
  /** False if the server keeps no snapshots of the folder, so that changes by commands are missing. */
  readonly hasSnapshots: boolean;
}

export interface PromptPart {
  /** Set if sending twice must not add a second part. */
  readonly id?: string | undefined;
  readonly text: string;
  /** Hidden from users. */
  readonly synthetic?: boolean | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * A file attached to a prompt. When the server accepts the prompt, it reads text files, the names in folders, and
 * images. It tells the model about files that it could not read.
 */
export interface PromptFile {
  /** A `file:` URL, with `?start=3&end=9` for a range of lines (from 1, inclusive), or a `data:` URL. */
  readonly url: string;
  /** `text/plain`, `application/x-directory`, or the type of an image. */
  readonly mime: string;
  /** The name that users see. */
  readonly filename?: string | undefined;
}

export interface Prompt {
  readonly messageID: string;
  /** Required, because without it the server would overwrite the session's agent with its default one. */
  readonly agent: string;
  readonly model?: ModelRef | undefined;
  readonly parts: readonly PromptPart[];
  readonly files?: readonly PromptFile[] | undefined;
  /** Stores the prompt without starting a turn. */
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
  /** Whether it is for internal use by the server. */
  readonly hidden: boolean;
  readonly model?: ModelRef | undefined;
  /** The agent's rules, which precede those of a session; see `permissions.ts`. */
  readonly permission: readonly PermissionRule[];
}

export interface ModelInfo {
  readonly ref: ModelRef;
  readonly name: string;
  readonly provider: string;
  /** In tokens. */
  readonly contextLimit?: number | undefined;
}

/** What a model calls a tool with. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

interface RequestedChange {
  readonly path: string;
  /** Where the file is then. */
  readonly movedTo?: string | undefined;
}

export interface PermissionRequest {
  readonly type: "permission";
  readonly id: string;
  readonly sessionID: string;
  /** The requested permission: `bash`, `edit`, `external_directory`, … */
  readonly permission: string;
  readonly patterns: readonly string[];
  /** The patterns that would be allowed from now on by the answer "always". */
  readonly always: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The files that it asks to change, by absolute paths, if the server names them. */
  readonly files?: readonly RequestedChange[] | undefined;
  /** The tool call that makes the request. */
  readonly call?: { readonly messageID: string; readonly callID: string } | undefined;
}

export interface Question {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiple: boolean;
  /** Whether the user may also enter an answer that is not among the options. */
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

/** An event from the server. */
export type ServerEvent =
  | SessionEvent
  /** Sent when nothing has happened for a while, to show that the server is alive. */
  | { readonly type: "heartbeat" };

/** An event in one session. */
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

/** The ID of the session that an event is about. */
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

/** Whether an event says that a session has no turn any more. */
export function isIdle(event: ServerEvent): event is Extract<ServerEvent, { type: "session-status" }> {
  return event.type === "session-status" && event.status.type === "idle";
}

/**
 * Which folder a session belongs to: this one; another one, of which it is an isolated task or was launched in one; or
 * perhaps another one, as it runs in another directory or doesn't exist.
 */
export type SessionOwner = "this" | "another" | "unknown";
