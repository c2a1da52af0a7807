import type { ProgramCall } from "../engine/connection.ts";
import type { CancelSignal, Disposable, Event } from "../engine/event.ts";
import type { EngineSettings, TaskEngine } from "../engine/engine.ts";
import type { FolderChange, FolderSnapshot } from "../engine/folder-changes.ts";
import type { Message, ModelInfo, SessionChanges } from "../engine/server-model.ts";
import type { Tombstone } from "../engine/find-task.ts";
import type { Task, TaskRecord } from "../engine/task.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import type { Transcript, TranscriptChange } from "../engine/transcript.ts";

export type { FolderChange, FolderSnapshot, MirroredSession } from "../engine/folder-changes.ts";

/*
 * What windows and the daemon tell each other. A window opens its folders, gets a snapshot of each and then every change
 * in order, and calls for what is to be done. All of it is JSON: what is undefined on one side is missing on the other.
 */

/** Raised with every change that an older window or daemon would not understand. */
export const PROTOCOL_VERSION = 2;

/** The first thing a window says; nothing else is answered before it. */
interface Hello {
  /** Made up by the window for this greeting. */
  readonly nonce: string;
  /**
   * Shows that the window knows the token, which is in a file that this user alone can read, and does not give it away:
   * on Windows, whoever listens may be somebody else. See `proof.ts`.
   */
  readonly proof: string;
  readonly protocol: number;
  /** The extension's. */
  readonly version: string;
  readonly pid: number;
}

export interface Welcome {
  /** Shows that the daemon knows the token too. */
  readonly proof: string;
  readonly protocol: number;
  readonly version: string;
  readonly pid: number;
}

/** What a window knows and the daemon needs of a folder. Sent anew, whole, whenever any of it changes. */
export interface FolderSettings {
  readonly engine: EngineSettings;
  readonly server: {
    readonly url?: string | undefined;
    readonly path?: string | undefined;
    readonly startTimeoutMs: number;
  };
  /** Of the server at `server.url`; the user entered it. */
  readonly password?: string | undefined;
  readonly agentTools: boolean;
  /** How long work goes on after the last window has closed, in milliseconds. */
  readonly keepWorkingMs: number;
  /** Whether somebody looks at the tasks of this folder now. */
  readonly watched: boolean;
}

export type Environment = Readonly<Record<string, string>>;

export interface OpenFolder {
  /** Real path. */
  readonly directory: string;
  readonly settings: FolderSettings;
  /** Of the window, for a server that is started now. */
  readonly env: Environment;
  /** What an earlier version kept in the editor. Taken over by a daemon that does not know the folder yet. */
  readonly kept?: KeptTasks | undefined;
}

/** What is kept of a folder's tasks, as a server may forget it. */
export interface KeptTasks {
  readonly tombstones: readonly Tombstone[];
  /** Tasks that were at work, or whose parent was still to be notified. */
  readonly unsettled: readonly TaskRecord[];
}

/** What is read on demand. */
type Reads = Pick<
  TaskEngine,
  "agents" | "takenSince" | "lastAnswer" | "toolInput" | "previewFork" | "forkStarts"
>;

/**
 * What can be called for in a folder. Rejects with the errors of the engine and the connection. A `CancelSignal` among
 * the arguments does not travel: the call itself is cancelled.
 */
export interface FolderCalls extends TaskCommands, Reads {
  models(): Promise<readonly ModelInfo[]>;
  /** The files that a session changed since then (milliseconds since 1970). */
  changes(sessionID: string, since: number): Promise<SessionChanges>;
  /** The ID of the session in which a user last wrote, created where the folder has none. */
  ensureSession(): Promise<string>;

  /** Joins a server that runs already, if there is one, and reads its tasks; starts none. Never rejects. */
  join(): Promise<void>;
  /** Resolves once connected and up to date. Starts a server where none runs. */
  connect(signal?: CancelSignal): Promise<void>;
  /** Gives up connecting, for all who wait for it. */
  cancelConnecting(): Promise<void>;
  /** Reads everything anew from the server. */
  refresh(): Promise<void>;
  /** Leaves the present server, as the settings name another one. */
  disconnect(): Promise<void>;
  /** Ends a server that this product started, and leaves it. */
  stopServer(): Promise<void>;
  attachCommand(sessionID: string): Promise<ProgramCall>;

  /** One of the tools for agents, called for the user in this session. Resolves to the text for the model. */
  callTool(name: string, input: unknown, sessionID: string, signal: CancelSignal): Promise<string>;
  /** What that would do to OpenCode's own configuration; undefined: there is no file to remove them from. */
  planAgentTools(action: "install" | "remove", scope: "project" | "user"): Promise<ConfigPlan | undefined>;
  /** Rejects with a `Refusal` where that cannot be; then nothing was changed. */
  applyAgentTools(plan: ConfigPlan): Promise<void>;
}

/** What becomes of a file of OpenCode's configuration; nothing if `after` is `before`. */
export interface ConfigPlan {
  readonly path: string;
  /** Undefined: there is no such file yet. */
  readonly before?: string | undefined;
  readonly after: string;
  /** The text in it that names the agent tools. */
  readonly entry: string;
}

export type FolderMethod = keyof FolderCalls;

/** A folder as a window holds it, over every restart of the daemon. */
export interface FolderClient extends Disposable {
  /** In order. The first ones, and those after each restart of the daemon, begin with a `reset`. */
  readonly onDidChange: Event<readonly FolderChange[]>;
  /** What a call changed was told by `onDidChange` before the call resolves. */
  readonly calls: FolderCalls;
  openTranscript(id: string): Promise<Transcript>;
  configure(settings: FolderSettings): void;
}

/** A folder as the daemon serves it to every window that opens it. */
export interface FolderService {
  readonly calls: FolderCalls;
  snapshot(): FolderSnapshot;
  /** In order; what happens within a short time is told in one go. */
  readonly onDidChange: Event<readonly FolderChange[]>;
  /** Tells at once what waits to be told. */
  flush(): void;
  openTranscript(id: string): Promise<Transcript>;
}

/** Which folder a message is about, by its real path. */
interface OfFolder {
  readonly directory: string;
}

/** What OpenCode's plugin knows of a folder that it wants to be opened. */
export interface Reopening {
  /** Of the server. */
  readonly env: Environment;
  /** Only where the folder was connected and nobody left it since. */
  readonly whatWasUsed: boolean;
}

/** Requests of a window, or of OpenCode's plugin, after the greeting. */
export interface DaemonRequests {
  hello(hello: Hello): Welcome;
  /** Shows that the daemon answers. */
  ping(): void;
  open(folder: OpenFolder): FolderSnapshot;
  /** Opens a folder without a window, as one had it open last, and joins its server. What no window had open stays closed. */
  reopen(folder: OfFolder & Reopening): void;
  call(call: OfFolder & { readonly method: FolderMethod; readonly args: readonly unknown[] }): unknown;
  openTranscript(transcript: OfFolder & { readonly id: string }): OpenedTranscript;
  /** What works for this user now, in all folders. */
  status(): DaemonStatus;
  /** Cancels the tasks of these folders. Those that no window has open are left then, and their servers end. */
  stop(work: { readonly directories: readonly string[] }): void;
  /** Leaves the servers running and ends, so that another version can go on with them. Windows of newer protocols may ask it. */
  handOver(): void;
}

/** What a window tells without waiting for an answer. */
export interface WindowNotifications {
  configure(settings: OfFolder & { readonly settings: FolderSettings }): void;
  close(folder: OfFolder): void;
  closeTranscript(transcript: { readonly key: number }): void;
}

/** What the daemon tells windows. */
export interface DaemonNotifications {
  changes(changes: OfFolder & { readonly changes: readonly FolderChange[] }): void;
  transcript(update: { readonly key: number; readonly change: TranscriptChange }): void;
  log(line: LogLine): void;
}

/** A conversation that a window follows. */
export interface OpenedTranscript {
  /** Names it among those of this window. */
  readonly key: number;
  readonly sessionID: string;
  readonly messages: readonly Message[];
}

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
}

export interface ServerStatus {
  readonly pid: number;
  /** In bytes; undefined where the system does not tell. */
  readonly memory?: number | undefined;
}

export interface DaemonStatus {
  readonly folders: readonly {
    readonly directory: string;
    readonly windows: number;
    /** Tasks at work or queued, the oldest first. */
    readonly tasks: readonly Task[];
    /** The process that was started for it, with folders of the same program; undefined where there is none. */
    readonly server?: ServerStatus | undefined;
  }[];
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}
