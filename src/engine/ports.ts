import { UserFacingError } from "./errors.ts";
import type { BringBackPlan, BroughtBack, FileChoice, ListedWorktree } from "./bring-back.ts";
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
  UserSave,
} from "./server-model.ts";
import type { EngineSettings, IsolationSettings, SetupSettings } from "./settings.ts";
import type { ModelRef, TaskRecord, TaskRecordDraft, TaskWorktree } from "./task.ts";
import type { TokenCounter } from "./token-counter.ts";

/** Everything that the engine needs from outside. */
export interface EnginePorts {
  readonly server: AgentServer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: Random;
  readonly tombstones: TaskMemoryStore;
  readonly tokens: TokenCounter;
  readonly worktrees: Worktrees;
  /** Whether paths that differ only in case name the same file. Defaults to no. */
  readonly ignoresCase?: boolean | undefined;
  /** Read at each use, so that changes take effect immediately. */
  readonly settings: () => EngineSettings;
}

/** The properties of a session to be created. */
export interface NewSession {
  readonly title: string;
  readonly parentID?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  readonly permission?: readonly PermissionRule[] | undefined;
  /** The directory in which the session runs. Defaults to the folder. */
  readonly directory?: string | undefined;
  /** The record of the task that the session will be. The session's ID becomes the task's ID. */
  readonly task?: TaskRecordDraft | undefined;
}

/**
 * A server that runs agents, as seen from one folder. All calls reject with a {@link ServerFailure} if the server is
 * unreachable, refuses, or returns an unexpected response.
 */
export interface AgentServer {
  /** The server's events in order. Those missed while disconnected are not repeated; `connect` reads the state. */
  readonly onEvent: Event<ServerEvent>;
  /** Whether the server continues turns by itself that were interrupted by its end, after it has started again. */
  readonly resumesTurns: boolean;

  createSession(session: NewSession): Promise<Session>;
  /** Undefined if there is no such session (any more). */
  session(sessionID: string): Promise<Session | undefined>;
  /** Appends permission rules to those of a session. */
  restrict(sessionID: string, rules: readonly PermissionRule[]): Promise<Session>;
  /** All sessions of the folder, including child sessions and archived ones. */
  sessions(): Promise<readonly Session[]>;
  deleteSession(sessionID: string): Promise<void>;
  /**
   * Creates a session with an exact copy of another one's conversation. If the server allows it, the copy is linked to
   * its parent, and the usage of the copied messages is not counted. Otherwise the task record holds both.
   */
  copySession(sourceID: string, session: NewSession): Promise<Session>;
  /** Whether conversations can be written into sessions. */
  canWriteHistory(): Promise<boolean>;
  /**
   * Gives an idle session this conversation in place of the one that it has, without asking a model. Its usage does not
   * count toward the session. Always possible without messages, which leaves the session empty.
   */
  writeHistory(sessionID: string, messages: readonly Message[]): Promise<void>;
  /** Replaces the task record in the session's metadata, and nothing else. Undefined if the session is gone. */
  saveRecord(record: TaskRecord): Promise<Session | undefined>;

  /** The newest `limit` messages (all if undefined), the oldest first. */
  messages(sessionID: string, limit?: number): Promise<readonly Message[]>;
  /** Undefined if there is no such message. */
  message(sessionID: string, messageID: string): Promise<Message | undefined>;
  /**
   * The files that a session changed in turns since this time (milliseconds since 1970), sorted by path.
   * @param saves what the user saved, as far as is known
   */
  changes(sessionID: string, since: number, saves?: readonly UserSave[]): Promise<SessionChanges>;
  /** Sends a prompt. Resolves once the server has accepted it, before any answer. */
  prompt(sessionID: string, prompt: Prompt): Promise<void>;
  /** Makes the server release what it keeps for a worktree (language servers, MCP servers), before it is removed. */
  releaseDirectory(directory: string): Promise<void>;
  /** Aborts the running turn of the session, if there is one. */
  abort(sessionID: string): Promise<void>;
  /** The sessions that are not idle. That a session is missing does not say how its turn ended. */
  statuses(): Promise<ReadonlyMap<string, SessionStatus>>;
  /** Whether a turn is running in this directory, whoever began it. */
  isWorkingIn(directory: string): Promise<boolean>;

  /** All agents: the default one of subagents first, then the others made for subagents. */
  agents(): Promise<readonly AgentInfo[]>;
  models(): Promise<readonly ModelInfo[]>;

  /** The permissions and questions that wait for a user, the oldest first. */
  pendingRequests(): Promise<readonly PendingRequest[]>;
  answer(request: PendingRequest, answer: RequestAnswer): Promise<void>;
}

/** What a worktree is made from. */
export interface NewWorktree {
  /** The worktree whose state it begins with. Defaults to the folder. */
  readonly from?: TaskWorktree | undefined;
  /** The name to use. A number is added if it is taken. */
  readonly name: string;
  /** The folder in which to make it. Defaults to one beside the repository. */
  readonly location?: string | undefined;
  /** Whether to include changes that are not committed, and new files. */
  readonly startFrom: IsolationSettings["startFrom"];
  /** See {@link IsolationSettings.include}. */
  readonly include?: readonly string[] | undefined;
}

/** A command to run in a worktree. */
export interface WorktreeSetup extends Pick<SetupSettings, "command" | "timeout"> {
  readonly signal: AbortSignal;
}

/** A file that differs from the state that a worktree began with. Paths are relative to the repository, with slashes. */
interface WorktreeFile {
  readonly path: string;
  /** The path before it was renamed. */
  readonly from?: string | undefined;
  readonly kind: "added" | "modified" | "deleted" | "renamed" | "mode";
  /** How many lines were added and removed. */
  readonly added: number;
  readonly removed: number;
}

/** What a task has changed in its worktree. */
export interface WorktreeChanges {
  /** Sorted by path. */
  readonly files: readonly WorktreeFile[];
  /** The Git ref of the state. */
  readonly ref: string;
}

/** What a worktree contains, compared with the state that it began with. */
export interface WorktreeState {
  /** The number of files that differ, and of their lines. */
  readonly files: number;
  readonly added: number;
  readonly removed: number;
  /** The paths that conflict with the folder or, if `worktree` names one, with another worktree. */
  readonly conflicts: readonly {
    readonly worktree?: string | undefined;
    readonly paths: readonly string[];
  }[];
}

/** Git worktrees, in which tasks work without touching the folder. Methods reject with a `UserFacingError`. */
export interface Worktrees {
  /** Why no worktree can be made from such a start, as one sentence. Undefined if one can. */
  obstacle(start: Pick<NewWorktree, "from" | "location">): Promise<Text | undefined>;
  /** Makes a worktree, which is removed by the next {@link takeUp} of another process unless it is claimed. */
  make(worktree: NewWorktree): Promise<TaskWorktree>;
  /** Notes that the task of a new worktree exists. */
  claim(worktree: TaskWorktree): Promise<void>;
  /** Removes a new worktree whose task could not be made. */
  removeUnused(worktree: TaskWorktree): Promise<void>;
  /**
   * Removes what earlier processes left unfinished.
   * @param worktrees those of all tasks
   * @returns the bases of worktrees by name. One differs if a process was killed before it noted the result of `takeIn`.
   */
  takeUp(worktrees: readonly TaskWorktree[]): Promise<ReadonlyMap<string, string>>;
  /** Runs the setup command. Rejects if it fails, takes too long or is cancelled; then nothing of it runs any more. */
  setUp(worktree: TaskWorktree, setup: WorktreeSetup): Promise<void>;
  /** The end of what the last setup command printed, so far if it is running. Undefined if there was none. */
  setupOutput(worktree: TaskWorktree): Promise<string | undefined>;
  exists(worktree: TaskWorktree): Promise<boolean>;
  /** What differs from the state that the worktree began with. Keeps the present state under a Git ref. */
  changes(worktree: TaskWorktree): Promise<WorktreeChanges>;
  /** Removes the worktree. Its present state is kept under a Git ref, unless nothing has changed. */
  remove(worktree: Pick<TaskWorktree, "name">): Promise<void>;
  /** Makes a worktree that is gone again, from its last state or from that under the ref of {@link discard}. */
  remake(
    worktree: TaskWorktree,
    options: Pick<NewWorktree, "include"> & { readonly discarded?: string | undefined },
  ): Promise<void>;

  /**
   * Merges the work in a worktree with the folder, without changing either.
   * @param unsaved the texts of editors that are not saved, by path below the folder
   */
  planBringBack(worktree: TaskWorktree, unsaved: ReadonlyMap<string, string>): Promise<BringBackPlan>;
  /** Whether the work in a worktree is still that of the plan, and nothing is there that no plan contains. */
  isAsPlanned(worktree: TaskWorktree, plan: BringBackPlan): Promise<boolean>;
  /**
   * Writes the chosen files to the folder, but to no index or branch. Writes nothing if one of them has changed since
   * the plan was made.
   * @param unsaved the paths whose texts are left to the editor
   */
  bringBack(
    plan: BringBackPlan,
    choices: readonly FileChoice[],
    unsaved: readonly string[],
  ): Promise<BroughtBack>;
  /** Restores every byte, unless a file has changed since. */
  undoBringBack(done: Omit<BroughtBack, "texts">): Promise<void>;
  /**
   * Writes the folder's state into a worktree, with conflict markers. Files on which only the user can decide stay as
   * they are, and in conflict. Resolves to the commit of that state, from which
   * the worktree's changes are counted from now on.
   */
  takeIn(worktree: TaskWorktree, plan: BringBackPlan): Promise<string>;
  /** Creates a branch with the work, and with `message` for what the agent has not committed. */
  createBranch(
    worktree: TaskWorktree,
    branch: { readonly name: string; readonly message: string },
  ): Promise<void>;
  /** Removes a worktree whose work is not wanted. Its state is kept for 30 days under the ref that this resolves to. */
  discard(worktree: TaskWorktree): Promise<string>;
  /**
   * Compares worktrees with their first states, with the folder as it is, and with each other. Those that are gone are
   * missing in the result.
   * @param changed the names of those that may have changed since the last call
   */
  predict(
    worktrees: readonly TaskWorktree[],
    changed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, WorktreeState>>;
  /** All worktrees that were made for tasks in the folder's repository. */
  list(): Promise<readonly ListedWorktree[]>;
}

/** The source of time. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs `callback` once after `ms` milliseconds unless disposed before. */
  after(ms: number, callback: () => void): Disposable;
}

/** Receives log messages. The implementation decides which levels are shown. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string, error?: unknown): void;
}

/** Stores what is known about tasks but no longer available from the server. */
export interface TaskMemoryStore {
  load(): readonly Tombstone[];
  save(tombstones: readonly Tombstone[]): void;
  /**
   * Tasks that are queued or running, or whose parent has not been notified yet, as last seen. Their sessions may be
   * deleted while no process is watching.
   */
  loadUnsettled(): readonly TaskRecord[];
  saveUnsettled(records: readonly TaskRecord[]): void;
}

/** A server call that failed. */
export class ServerFailure extends UserFacingError {
  override readonly name = "ServerFailure";

  constructor(
    /** The call in readable form. */
    readonly call: string,
    readonly reason: "unreachable" | "refused" | "unexpected-answer" | "unauthorized" | "not-found",
    text: Text,
    /** The HTTP status, if there was a response. */
    readonly status?: number,
  ) {
    super(text);
  }

  /** Whether the same call may succeed later, without any other change. */
  get isPassing(): boolean {
    return this.reason === "unreachable" || this.status === 429 || (this.status ?? 0) >= 500;
  }
}
