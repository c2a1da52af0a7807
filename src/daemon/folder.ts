import { ToolService } from "../bridge/tool-service.ts";
import { ActiveSession } from "../engine/active-session.ts";
import { TaskEngine } from "../engine/engine.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { Task } from "../engine/task.ts";
import type { TokenCounter } from "../engine/token-counter.ts";
import type { Transcript } from "../engine/transcript.ts";
import { OpenCodeConnection } from "../opencode/connection.ts";
import { PluginConfig } from "../opencode/plugin-config.ts";
import type { OwnServers } from "../opencode/own-servers.ts";
import type { ServerEvents } from "../opencode/server-events.ts";
import type {
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
import { createFolderCalls } from "./folder-calls.ts";
import type { Limit } from "./limit.ts";
import type { StateFile } from "./state-files.ts";
import { FolderFeed } from "./folder-feed.ts";

/** What all folders of the daemon share. */
export interface Shared {
  /** A folder of this user alone. */
  readonly stateFolder: string;
  readonly home: string;
  /** The absolute path of a bundle, by its name. */
  readonly bundle: (name: string) => string;
  readonly ownServers: OwnServers;
  readonly tokens: TokenCounter;
  readonly starts: Limit;
  /** How long a folder without windows is kept, in milliseconds: a reload of a window takes a moment. */
  readonly graceMs: number;
  readonly events: ServerEvents;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One folder with all that works on it. */
export class Folder implements FolderService, Disposable {
  readonly directory: string;
  readonly calls: FolderCalls;
  readonly onDidChange: Event<readonly FolderChange[]>;
  private settings: FolderSettings;
  /** Of the window that opened it last, for a server that is started. */
  private env: Environment;
  private watched = false;
  /** In the order in which they were made. */
  private readonly parts: Disposable[] = [];
  private readonly connection: OpenCodeConnection;
  private readonly connecting: Connecting;
  private readonly engine: TaskEngine;
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
    const engine = this.own(
      new TaskEngine({
        server,
        clock,
        logger,
        random: Math.random,
        tombstones: state,
        tokens,
        settings: () => this.settings.engine,
      }),
    );
    this.engine = engine;
    const session = this.own(new ActiveSession(engine, server, logger));
    const joins = (): boolean => this.settings.server.url !== undefined || state.isUsed;
    const connecting = this.own(
      new Connecting({ connection, engine, session, starts, joins, clock, logger }),
    );
    this.own(
      connection.onDidChangeState(({ kind }) => {
        // What is left on purpose is not joined by itself; what is lost is.
        if (kind === "connected") state.setUsed(true);
        else if (kind === "disconnected") state.setUsed(false);
      }),
    );
    this.connecting = connecting;
    this.tools = this.own(
      new ToolService({
        connection: connecting,
        isEnabled: () => this.settings.agentTools,
        known: engine,
        commands: engine,
        beginWrite: ({ sessionID, paths }) => engine.beginWrite(sessionID, paths),
        directory,
        stateFolder,
        clock,
        logger,
      }),
    );
    this.feed = this.own(new FolderFeed({ engine, session, connecting, state, clock, logger }));
    this.onDidChange = this.feed.onDidChange;
    this.calls = createFolderCalls({ engine, session, connection, connecting, plugin: () => this.plugin() });
    this.own(engine.onDidChange(() => this.followAttention()));
  }

  /** Queued or at work, the oldest first. */
  active(): readonly Task[] {
    return [...this.engine.active()].sort((a, b) => a.createdAt - b.createdAt);
  }

  /** Ends what is queued or at work; what is queued first, so that none of it starts meanwhile. */
  async cancelAll(): Promise<void> {
    const tasks = this.active();
    const failures: unknown[] = [];
    for (const some of [tasks.filter(({ queued }) => queued), tasks.filter(({ queued }) => !queued)])
      await Promise.all(
        some.map(({ id }) =>
          this.engine.cancel(id).catch((error: unknown) => {
            // It ended by itself meanwhile.
            if (!(error instanceof Refusal)) failures.push(error);
          }),
        ),
      );
    if (failures.length > 0) throw failures[0];
  }

  /** The process that was started for it; undefined: there is none. */
  async server(): Promise<ServerStatus | undefined> {
    const { serverPid: pid } = this.connection;
    return pid === undefined ? undefined : { pid, memory: await memoryOf(pid) };
  }

  /** As the last window opened it. */
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

  openTranscript(id: string): Promise<Transcript> {
    return this.engine.transcript(id);
  }

  /** Of the window whose word is the last one. */
  configure(settings: FolderSettings): void {
    const before = this.settings;
    this.settings = settings;
    this.state.keepSettings(settings);
    this.tools.update();
    this.engine.settingsChanged();
    if (serverOf(before) !== serverOf(settings)) void this.reconnect();
  }

  /** For a server that is started from now on. */
  useEnvironment(env: Environment): void {
    this.env = env;
  }

  /** Whether somebody looks at the tasks of this folder now. */
  setWatched(watched: boolean): void {
    this.watched = watched;
    this.followAttention();
  }

  /** Whether something works here, or may do so, that would be lost, or come to nothing, if the server ended now. */
  async isRunning(): Promise<boolean> {
    const { kind } = this.connection.state;
    // What is joined may be at work, and what was at work on a server that is replaced is still to be told of.
    if (kind === "connecting") return true;
    if (kind !== "connected" && kind !== "reconnecting") return false;
    if (!this.engine.isSettled()) return true;
    try {
      // A parent that was just told goes on with what it was told.
      return (await this.connection.server.statuses()).size > 0;
    } catch (error) {
      this.shared.logger.warn(
        `Couldn't read whether tasks are running in ${this.directory}: ${messageOf(error)}`,
      );
      return true;
    }
  }

  /** Whether nothing is at work any more, but a parent is still to be notified. */
  isNotifying(): boolean {
    return this.engine.active().length === 0 && !this.engine.isSettled();
  }

  /** Leaves the folder for good: a server that was started for it ends, unless somebody else uses it. */
  async finish(): Promise<void> {
    this.connection.finish();
    await this.leave();
  }

  /** Leaves the folder; its server stays for whoever comes within its grace period. Resolves once all is written. */
  async leave(): Promise<void> {
    this.dispose();
    await this.state.written();
  }

  dispose(): void {
    for (const part of this.parts.splice(0).reverse()) part.dispose();
  }

  private own<T extends Disposable>(part: T): T {
    this.parts.push(part);
    return part;
  }

  private createConnection(): OpenCodeConnection {
    const { ownServers, events, graceMs, clock, logger } = this.shared;
    const { directory } = this;
    const env = (): Environment => this.env;
    const connection = this.own(
      new OpenCodeConnection({
        directory,
        ownServers,
        settings: () => this.settings.server,
        password: async () => this.settings.password,
        get env() {
          return env();
        },
        serverEnv: async (env) => {
          const { agentTools, engine } = this.settings;
          // Tasks of the lowest level may have subagents too. A user's tasks are one level deep, whatever agents may.
          const subagentDepth = Math.max(engine.maxDepth, 1) + 1;
          return this.plugin().serverEnv(env, { tools: agentTools, subagentDepth, graceMs });
        },
        events,
        clock,
        logger,
      }),
    );
    this.own(connection.onDidConnect(() => void this.plugin().refreshPlugin()));
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

  /** The settings name another server: leaves the present one, and joins that if somebody looks on. */
  private async reconnect(): Promise<void> {
    if (this.connection.state.kind === "disconnected") return;
    try {
      await this.connecting.disconnect();
      if (this.watched) await this.connecting.connect();
    } catch (error) {
      this.shared.logger.warn(`Couldn't connect: ${messageOf(error)}`);
    }
  }
}

/** What names a server among all, as a text to be compared. */
function serverOf({ server, password }: FolderSettings): string {
  return JSON.stringify([server.url, server.path, password]);
}
