import { Emitter } from "../../../src/engine/event.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import type { ConversationMessage, ConversationQuestion, LinkTarget } from "../../../src/protocol/output.ts";
import {
  PROTOCOL_VERSION,
  type Conversation,
  type DaemonStatus,
  type Diagnostics,
  type FolderCalls,
  type FolderChange,
  type FolderService,
  type FolderSettings,
  type FolderSnapshot,
  type LogLine,
  type OpenFolder,
} from "../../../src/rpc/contract.ts";
import type { DaemonEntry } from "../../../src/rpc/daemon-files.ts";
import type { FolderHost, HostedFolder } from "../../../src/rpc/folder-host.ts";
import { NO_ISOLATION } from "../../../src/engine/settings.ts";

const fail = (error: unknown): never => {
  throw error;
};

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export const settings: FolderSettings = {
  engine: {
    pollInterval: 1_000,
    stallWarning: 0,
    fork: { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" },
    maxConcurrentTasks: 0,
    maxDepth: 1,
    notifyParent: true,
    collisions: "block",
    isolation: NO_ISOLATION,
    budget: {},
  },
  server: { startTimeoutMs: 1_000 },
  agentTools: true,
  keepWorkingMs: 0,
  watched: false,
};

/** The entry of a daemon, by default of this process. */
export function daemonEntry(facts: Partial<DaemonEntry> = {}): DaemonEntry {
  return {
    socket: "/none",
    token: "t",
    pid: process.pid,
    protocol: PROTOCOL_VERSION,
    version: "1.2.0",
    ...facts,
  };
}

export function folder(directory = "/work"): OpenFolder {
  return { directory, settings, env: { PATH: "/bin" } };
}

/** A folder whose behavior a test provides. Changes are sent when they are flushed. */
export class FakeService implements FolderService {
  private readonly changes = new Emitter<readonly FolderChange[]>(fail);
  private pending: FolderChange[] = [];
  private readonly latest: { id: string | undefined } = { id: undefined };
  readonly onDidChange = this.changes.event;
  readonly conversations: FakeConversation[] = [];
  calls: FolderCalls;

  constructor(calls: Partial<FolderCalls> = {}) {
    this.calls = calls as FolderCalls;
  }

  /** Changes the latest session, which is the simplest change. */
  change(id: string): void {
    this.latest.id = id;
    this.pending.push({ type: "latest-session", id });
  }

  /** Only now the tasks are known, and so are their conversations. */
  connect(): void {
    const state = { kind: "connected", url: "http://127.0.0.1:1", version: "1.18.33", own: true } as const;
    this.tell({ type: "connection", state });
  }

  /** Reports a change together with what was pending. */
  tell(change: FolderChange): void {
    this.pending.push(change);
    this.flush();
  }

  snapshot(): FolderSnapshot {
    return {
      connection: { kind: "disconnected" },
      sessions: [],
      tasks: [],
      subagents: [],
      requests: [],
      tombstones: [],
      latestSessionID: this.latest.id,
    };
  }

  flush(): void {
    const changes = this.pending;
    this.pending = [];
    if (changes.length > 0) this.changes.fire(changes);
  }

  get listeners(): number {
    return this.changes.size;
  }

  async openConversation(id: string, send: FakeConversation["send"]): Promise<FakeConversation> {
    const conversation = new FakeConversation(id, send);
    this.conversations.push(conversation);
    return conversation;
  }
}

/** Takes down the questions, and answers each link with the session. */
export class FakeConversation implements Conversation {
  readonly questions: ConversationQuestion[] = [];
  isDisposed = false;

  constructor(
    readonly id: string,
    readonly send: (message: ConversationMessage) => void,
  ) {}

  ask(question: ConversationQuestion): void {
    this.questions.push(question);
  }

  async open(): Promise<LinkTarget> {
    return { type: "session", id: this.id };
  }

  dispose(): void {
    this.isDisposed = true;
  }
}

/** Serves every folder with the same service. */
export class FakeHost implements FolderHost {
  private readonly log = new Emitter<LogLine>(fail);
  readonly onDidLog = this.log.event;
  readonly opened: OpenFolder[] = [];
  readonly reopened: Parameters<FolderHost["reopen"]>[] = [];
  readonly configured: FolderSettings[] = [];
  isEnding = false;
  closed = 0;
  readonly stopped: string[] = [];
  handedOver = 0;
  onHandOver: () => void = () => undefined;
  /** Opening a folder waits for this. */
  gate: () => Promise<void> = async () => undefined;

  constructor(readonly service = new FakeService()) {}

  async open(folder: OpenFolder): Promise<HostedFolder> {
    this.opened.push(folder);
    await this.gate();
    return {
      service: this.service,
      configure: (settings) => void this.configured.push(settings),
      close: () => void this.closed++,
    };
  }

  async reopen(...folder: Parameters<FolderHost["reopen"]>): Promise<void> {
    this.reopened.push(folder);
  }

  async findExecutable(...[search]: Parameters<FolderHost["findExecutable"]>): Promise<string> {
    return search.path ?? `${search.env["PATH"]}/opencode`;
  }

  async installCommand(
    ...[installation]: Parameters<FolderHost["installCommand"]>
  ): Promise<string | undefined> {
    return installation.isPrivate ? undefined : "install";
  }

  async status(): Promise<DaemonStatus> {
    return { folders: [], pid: process.pid, startedAt: 1 };
  }

  async diagnostics(): Promise<Diagnostics> {
    return {};
  }

  async stop(directories: readonly string[]): Promise<void> {
    this.stopped.push(...directories);
  }

  async handOver(): Promise<void> {
    this.handedOver++;
    this.onHandOver();
  }

  tell(line: LogLine): void {
    this.log.fire(line);
  }
}
