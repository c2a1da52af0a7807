import { UserFacingError } from "./errors.ts";
import type { Disposable, Event } from "./event.ts";
import type { Tombstone } from "./find-task.ts";
import type { Random } from "./ids.ts";
import type { Text } from "./sentence.ts";
import type {
  AgentInfo,
  Message,
  ModelInfo,
  PendingRequest,
  Prompt,
  PermissionRule,
  RequestAnswer,
  ServerEvent,
  Session,
  SessionChanges,
  SessionStatus,
} from "./server-model.ts";
import type { EngineSettings } from "./settings.ts";
import type { ModelRef, TaskRecord, TaskRecordDraft } from "./task.ts";
import type { TokenCounter } from "./token-counter.ts";

/** All that the engine needs of the world. */
export interface EnginePorts {
  readonly server: AgentServer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: Random;
  readonly tombstones: TaskMemoryStore;
  readonly tokens: TokenCounter;
  /** Read at each use, so that a change takes effect at once. */
  readonly settings: () => EngineSettings;
}

/** What the engine asks of a new session. */
export interface NewSession {
  readonly title: string;
  readonly parentID?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  readonly permission?: readonly PermissionRule[] | undefined;
  /** The task that this session is to be; its ID becomes the session's. */
  readonly task?: TaskRecordDraft | undefined;
}

/**
 * A server that runs agents, seen through one folder. Every call rejects with a {@link ServerFailure} that names
 * the call when the server cannot be reached, refuses, or answers with something that does not fit.
 */
export interface AgentServer {
  /** What happens on the server, in the order in which it was told. What was missed while disconnected is not repeated: the engine reads it when it connects. */
  readonly onEvent: Event<ServerEvent>;

  createSession(session: NewSession): Promise<Session>;
  /** Undefined: no such session (any more). */
  session(sessionID: string): Promise<Session | undefined>;
  /** The rules that a session has beside those of the agent that works in it; none if it is gone. */
  permissions(sessionID: string): Promise<readonly PermissionRule[]>;
  /** Adds rules to a session's, after those it has. */
  restrict(sessionID: string, rules: readonly PermissionRule[]): Promise<void>;
  /** Every session of the folder, roots and children, archived ones too. */
  sessions(): Promise<readonly Session[]>;
  deleteSession(sessionID: string): Promise<void>;
  /**
   * A new session with an exact copy of another one's conversation. Where the server allows it, it is linked to its
   * parent and starts without what the copied messages took; otherwise both are to be read from its record.
   */
  copySession(sourceID: string, session: NewSession): Promise<Session>;
  /** Whether conversations can be written into sessions. */
  canWriteHistory(): Promise<boolean>;
  /** Writes a conversation into a session that was just created; no model is asked. What it took is not the session's. */
  writeHistory(sessionID: string, messages: readonly Message[]): Promise<void>;
  /** Removes every message of a session that is idle. */
  removeMessages(sessionID: string): Promise<void>;
  /** Replaces the task record kept in the session and leaves what others keep beside it. Undefined: the session is gone. */
  saveRecord(record: TaskRecord): Promise<Session | undefined>;

  /** The newest `limit` messages (all without it), oldest first. */
  messages(sessionID: string, limit?: number): Promise<readonly Message[]>;
  /** Undefined: no such message. */
  message(sessionID: string, messageID: string): Promise<Message | undefined>;
  /** The files that a session changed in its turns since then (milliseconds since 1970), sorted by path. */
  changes(sessionID: string, since: number): Promise<SessionChanges>;
  /** Hands a prompt over and returns once the server took it, before any answer. */
  prompt(sessionID: string, prompt: Prompt): Promise<void>;
  /** Ends the turn that runs in the session, if one does. */
  abort(sessionID: string): Promise<void>;
  /** The sessions that are not idle. A session that is missing is idle, which says nothing of how its turn ended. */
  statuses(): Promise<ReadonlyMap<string, SessionStatus>>;

  agents(): Promise<readonly AgentInfo[]>;
  models(): Promise<readonly ModelInfo[]>;

  /** Permissions and questions that wait for a user now, the oldest first. */
  pendingRequests(): Promise<readonly PendingRequest[]>;
  answer(request: PendingRequest, answer: RequestAnswer): Promise<void>;
}

/** Time, and later. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs `callback` once after `ms` milliseconds unless disposed before. */
  after(ms: number, callback: () => void): Disposable;
}

/** Where the engine tells what it does; the caller decides what is shown. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string, error?: unknown): void;
}

/** Where what the server does not tell of tasks any more outlives the process. */
export interface TaskMemoryStore {
  load(): readonly Tombstone[];
  save(tombstones: readonly Tombstone[]): void;
  /** Tasks that are queued or at work, or whose parent has not been notified yet, as last seen: their session may be deleted while nobody watches. */
  loadUnsettled(): readonly TaskRecord[];
  saveUnsettled(records: readonly TaskRecord[]): void;
}

/** A call that the server did not carry out. */
export class ServerFailure extends UserFacingError {
  override readonly name = "ServerFailure";

  constructor(
    /** The call, as a user can read it: `POST /session`. */
    readonly call: string,
    readonly reason: "unreachable" | "refused" | "unexpected-answer" | "unauthorized" | "not-found",
    text: Text,
    /** HTTP status where there was an answer. */
    readonly status?: number,
  ) {
    super(text);
  }
}
