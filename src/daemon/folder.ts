import { DisposableStore } from "../engine/disposable-store.ts";
import { join } from "node:path";
import { ToolService } from "../bridge/tool-service.ts";
import { ActiveSession } from "../engine/active-session.ts";
import { TaskEngine } from "../engine/engine.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import type { Disposable, Emitter, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { Task } from "../engine/task.ts";
import type { TokenCounter } from "../engine/token-counter.ts";
import { FolderWorktrees } from "../git/folder-worktrees.ts";
import { OpenCodeConnection } from "../opencode/connection.ts";
import { IGNORES_CASE } from "../opencode/file-names.ts";
import { PluginConfig } from "../opencode/plugin-config.ts";
import type { OwnServers } from "../opencode/own-servers.ts";
import { DATABASE } from "../opencode/server-program.ts";
import { parseServerUrl, withoutPassword } from "../opencode/server-url.ts";
import type { ServerEvents } from "../opencode/server-events.ts";
import type { ConversationMessage } from "../protocol/output.ts";
import type {
  Conversation,
  Environment,
  FolderCalls,
  FolderChange,
  FolderService,
  FolderSettings,
  FolderSnapshot,
  OpenFolder,
  ServerStatus,
} from "../rpc/contract.ts";
import { memoryOf } from "../state/processes.ts";
import { Connecting } from "./connecting.ts";
import { ShownConversation, type Speaker } from "./conversation/shown-conversation.ts";
import { createFolderCalls } from "./folder-calls.ts";
import type { Semaphore } from "./semaphore.ts";
import type { StateFile } from "./state-files.ts";
import { FolderFeed } from "./folder-feed.ts";
import { Returning } from "./returning.ts";
import { followWorktrees, UserSaves, type SavedFile } from "./user-saves.ts";

/** What all folders of the daemon share. */
export interface Shared {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  readonly home: string;
  /** Returns the absolute path of a bundle, given its name. */
  readonly bundle: (name: string) => string;
  readonly ownServers: OwnServers;
  readonly tokens: TokenCounter;
  readonly starts: Semaphore;
  /** How long a folder without windows is kept, in milliseconds, as reloading a window takes a moment. */
  readonly graceMs: number;
  readonly events: ServerEvents;
  /** Fires for each file that the user saves in a window that has a folder open. */
  readonly saves: Emitter<SavedFile>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One folder with all the parts that serve it. */
export class DaemonFolder implements FolderService, Disposable {
  readonly directory: string;
  readonly calls: FolderCalls;
  readonly onDidChange: Event<readonly FolderChange[]>;
  private settings: FolderSettings;
  /** The environment of the window that opened the folder last, used when a server is started. */
  private env: Environment;
  private watched = false;
  /** In order of creation. */
  private readonly parts = new DisposableStore();
  private readonly connection: OpenCodeConnection;
  private readonly connecting: Connecting;
  private readonly engine: TaskEngine;
  private readonly returning: Returning;
  private readonly tools: ToolService;
  private readonly feed: FolderFeed;

  constructor(
    { directory, settings, env }: OpenFolder,
    private readonly shared: Shared,
    private readonly state: StateFile,
  ) {
    const { stateFolder, tokens, starts, clock, logger } = shared;
    this.directory = directory;
    this.settings = settings;
    this.env = env;
    this.connection = this.createConnection();
    const { connection } = this;
    const { server } = connection;
    const engine = this.parts.add(
      new TaskEngine({
        server,
        clock,
        logger,
        random: Math.random,
        tombstones: state,
        tokens,
        worktrees: new FolderWorktrees(directory, () => this.env, logger),
        ignoresCase: IGNORES_CASE,
        settings: () => this.settings.engine,
      }),
    );
    this.engine = engine;
    const session = this.parts.add(new ActiveSession(engine, server, logger));
    const unasked = () => {
      if (this.settings.server.url !== undefined) return "join";
      // The last daemon didn't disconnect the folder: its server is still running, or has ended with the daemon.
      return state.isUsed ? "connect" : "nothing";
    };
    const connecting = this.parts.add(
      new Connecting({
        ...{ connection, engine, session, starts, unasked, clock, logger },
        left: () => state.setUsed(false),
      }),
    );
    this.parts.add(
      connection.onDidChangeState(({ kind }) => {
        // The folder rejoins a server whose connection was lost, but not one that it disconnected from on purpose.
        if (kind === "connected") state.setUsed(true, connection.serverKey);
        else if (connecting.state.kind === "disconnected") state.setUsed(false);
      }),
    );
    this.connecting = connecting;
    this.tools = this.parts.add(
      new ToolService({
        connection: connecting,
        isEnabled: () => this.settings.agentTools,
        known: engine,
        commands: engine,
        beginWrite: ({ sessionID, paths }) => engine.beginWrite(sessionID, paths),
        ownerOf: (sessionID) => server.ownerOf(sessionID),
        directory,
        worktrees: () => engine.worktrees.directories(),
        stateFolder,
        clock,
        logger,
      }),
    );
    // A worktree can have a window of its own.
    this.parts.add(followWorktrees(shared.saves.event, engine));
    this.feed = this.parts.add(
      new FolderFeed({ directory, engine, session, connecting, state, clock, logger }),
    );
    this.onDidChange = this.feed.onDidChange;
    this.returning = new Returning(connecting, () => state.isUsed);
    this.calls = this.returning.whenBack(
      createFolderCalls({
        directory,
        saves: this.parts.add(new UserSaves({ directory, engine, connecting, state }, shared.saves.event)),
        tellSaved: (file) => shared.saves.fire(file),
        engine,
        session,
        connection,
        connecting,
        plugin: () => this.plugin(),
      }),
    );
    this.parts.add(
      engine.onDidChange(({ before, after }) => {
        this.followAttention();
        if (before?.worktree?.directory !== after?.worktree?.directory) this.tools.update();
      }),
    );
  }

  /** The queued and running tasks, those launched or resumed first come first. */
  active(): readonly Task[] {
    return [...this.engine.active()].sort((a, b) => a.startedAt - b.startedAt);
  }

  /** Cancels all queued and running tasks. The queued ones come first, so that none of them starts in the meantime. */
  async cancelAll(): Promise<void> {
    const tasks = this.active();
    const failures: unknown[] = [];
    for (const some of [tasks.filter(({ queued }) => queued), tasks.filter(({ queued }) => !queued)])
      await Promise.all(
        some.map(({ id, parentSessionID }) =>
          // A task that is told of the end of its subtask would begin again.
          this.engine
            .cancel(id, this.engine.get(parentSessionID) ? "parent" : "person")
            .catch((error: unknown) => {
              // The task ended by itself in the meantime.
              if (!(error instanceof Refusal)) failures.push(error);
            }),
        ),
      );
    if (failures.length > 0) throw failures[0];
  }

  /** The server process that was started for the folder. Undefined if there is none. */
  async server(): Promise<ServerStatus | undefined> {
    const { serverPid: pid } = this.connection;
    return pid === undefined ? undefined : { pid, memory: await memoryOf(pid) };
  }

  /** What is needed to open the folder again: its settings, and the environment of the last window that opened it. */
  opened(): OpenFolder {
    const { directory, settings, env } = this;
    return { directory, settings, env };
  }

  snapshot(): FolderSnapshot {
    return this.feed.snapshot();
  }

  flush(): void {
    this.feed.flush();
  }

  async openConversation(id: string, send: (message: ConversationMessage) => void): Promise<Conversation> {
    const { engine, directory } = this;
    const speaker = (): Speaker => ({
      child: engine.child(id),
      folder: engine.worktrees.of(id)?.directory ?? directory,
    });
    const transcript = await this.returning.run(() => engine.transcript(id));
    return new ShownConversation(transcript, speaker, send);
  }

  /**
   * Whether going to another server takes it from nobody.
   * @param isAlone whether at most one window has the folder open
   */
  isFree(isAlone: boolean): boolean {
    if (this.connection.state.kind === "failed") return true;
    return isAlone && this.isSettled();
  }

  /** Whether, as far as is known, no task is queued or running here, and no parent still has to be notified. */
  isSettled(): boolean {
    // Until the tasks have been read, the engine knows none of those that the folder may be about to rejoin.
    return this.connecting.state.kind === "connected" ? this.engine.isSettled() : !this.state.hasWork;
  }

  /** Whether it is on the way back to tasks that are unsettled, none of which is known yet. */
  isReturning(): boolean {
    const { kind } = this.connecting.state;
    // A read that failed is tried again.
    const isOnItsWay =
      kind === "failed"
        ? this.connection.state.kind === "connected"
        : kind === "connecting" || kind === "reconnecting";
    return isOnItsWay && this.active().length === 0 && this.state.hasWork;
  }

  /** These settings with the server that the folder has now. */
  withItsServer(settings: FolderSettings): FolderSettings {
    const { server, password } = this.settings;
    const { startTimeoutMs } = settings.server;
    // A folder that was opened without a window has no password yet.
    if (serverOf(settings) === serverOf(this.settings) && !hasPassword(this.settings)) return settings;
    return { ...settings, server: { ...server, startTimeoutMs }, password };
  }

  /** Applies these settings instead of those that applied before. */
  configure(settings: FolderSettings): void {
    const before = this.settings;
    this.settings = settings;
    this.state.keepSettings(settings);
    this.tools.update();
    this.engine.settingsChanged();
    const isSame = serverOf(before) === serverOf(settings);
    // A password that is new doesn't matter to a connection that was made without it, as a folder is reopened without one.
    if (isSame && this.connection.state.kind === "connected") return;
    if (!isSame || passwordsOf(before) !== passwordsOf(settings)) void this.reconnect();
  }

  /** Sets the environment of servers that are started from now on. */
  useEnvironment(env: Environment): void {
    this.env = env;
  }

  /** Whether a user is looking at the tasks of this folder. */
  setWatched(watched: boolean): void {
    this.watched = watched;
    this.followAttention();
  }

  /** Whether work is running here, or may be, that would be lost if the server ended now. */
  async isRunning(): Promise<boolean> {
    const { kind } = this.connection.state;
    // A server that is being joined, or is about to be, may be running tasks, and parents may still have to be notified.
    if (this.connecting.state.kind === "connecting") return true;
    if (kind !== "connected" && kind !== "reconnecting") return false;
    if (!this.isSettled()) return true;
    // It cannot be asked. One of the user's own may never come back, but doesn't end with the daemon either; any other
    // is restarted or given up soon.
    if (kind === "reconnecting") return this.settings.server.url === undefined;
    try {
      // A parent that has just been notified may still be working on its notice.
      return (await this.connection.server.statuses()).size > 0;
    } catch (error) {
      this.shared.logger.warn(
        `Couldn't read whether tasks are running in ${this.directory}: ${messageOf(error)}`,
      );
      return true;
    }
  }

  /** Whether no task is running any more, but a parent still has to be notified. */
  isNotifying(): boolean {
    return this.engine.active().length === 0 && !this.engine.isSettled();
  }

  /** Closes the folder for good. A server that was started for it ends, unless another folder uses it. */
  async finish(): Promise<void> {
    this.connection.finish();
    await this.leave();
  }

  /** Closes the folder. Its server keeps running for its grace period. Resolves once the state has been written. */
  async leave(): Promise<void> {
    this.dispose();
    await this.state.close();
  }

  dispose(): void {
    this.parts.dispose();
  }

  private createConnection(): OpenCodeConnection {
    const { ownServers, events, graceMs, clock, logger } = this.shared;
    const { directory } = this;
    const env = (): Environment => this.env;
    const connection = this.parts.add(
      new OpenCodeConnection({
        directory,
        ownServers,
        settings: () => this.settings.server,
        password: async () => this.settings.password,
        get env() {
          return env();
        },
        serverEnv: async (env) => {
          const { agentTools, engine, server } = this.settings;
          const database = server.ownDatabase
            ? { [DATABASE]: join(this.shared.stateFolder, "opencode.db") }
            : {};
          // Tasks at the lowest level may have subagents too. Users can always launch tasks one level deep.
          const subagentDepth = Math.max(engine.maxDepth, 1) + 1;
          return this.plugin().serverEnv(
            { ...env, ...database },
            { tools: agentTools, subagentDepth, graceMs },
          );
        },
        usedKey: () => this.state.serverKey,
        permissions: this.state,
        events,
        clock,
        logger,
      }),
    );
    this.parts.add(connection.onDidConnect(() => void this.plugin().refreshPlugin()));
    return connection;
  }

  private plugin(): PluginConfig {
    const { stateFolder, home, bundle, logger } = this.shared;
    const places = { directory: this.directory, env: this.env, home };
    return new PluginConfig({ bundle: bundle("opencode-plugin.js"), stateFolder, places, logger });
  }

  private followAttention(): void {
    this.connection.setWatched(this.watched || this.engine.active().length > 0);
  }

  /** The settings name another server: disconnects from the current one, and connects if a user is looking on. */
  private async reconnect(): Promise<void> {
    if (this.connection.state.kind === "disconnected") return;
    // Nobody would know of tasks that went on there.
    this.connection.unload();
    try {
      await this.connecting.disconnect();
      if (this.watched) await this.connecting.connect();
    } catch (error) {
      this.shared.logger.warn(`Couldn't connect: ${messageOf(error)}`);
    }
  }
}

/** Whether the settings select the same server and the same password for it. */
export function selectSame(one: FolderSettings, other: FolderSettings): boolean {
  return serverOf(one) === serverOf(other) && passwordsOf(one) === passwordsOf(other);
}

/** Identifies the server that the settings select, as a text for comparison. */
function serverOf({ server: { url, path, ownDatabase } }: FolderSettings): string {
  return JSON.stringify([url && withoutPassword(url), path, ownDatabase === true]);
}

function hasPassword({ server: { url }, password }: FolderSettings): boolean {
  const parsed = url === undefined ? undefined : parseServerUrl(url);
  return password !== undefined || (parsed !== undefined && "url" in parsed && parsed.password !== undefined);
}

function passwordsOf({ server, password }: FolderSettings): string {
  return JSON.stringify([server.url, password]);
}
