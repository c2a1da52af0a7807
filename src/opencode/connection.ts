import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { ConnectionError } from "../engine/connection.ts";
import type { ConnectionFailure, ConnectionState, ProgramCall } from "../engine/connection.ts";
import { textOf } from "../engine/errors.ts";
import { Emitter, logged } from "../engine/event.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { sessionOf, type ServerEvent } from "../engine/server-model.ts";
import { OpenCodeAgentServer } from "./agent-server.ts";
import { attachCommand } from "./attach-command.ts";
import type { Attachment, Search } from "./attachment.ts";
import { isUp, reduce, type ConnectionAction } from "./connection-state.ts";
import { cancelled, isCancelled, unlessCancelled } from "./cancel.ts";
import { createEventDecoder } from "./events.ts";
import { failures } from "./failures.ts";
import { Link } from "./link.ts";
import { findOpenCode, type FoundOpenCode } from "./locate.ts";
import type { PermissionStore } from "./reported-permissions.ts";
import type { OwnServers, Wanted } from "./own-servers.ts";
import { DATABASE, type Environment, type ServerProgram } from "./server-program.ts";
import type { ServerEvents } from "./server-events.ts";
import { SessionDirectories } from "./session-directories.ts";
import { findServerByUrl } from "./url-server.ts";
import { supportOf } from "./versions.ts";
import { requireSupported } from "./version-look.ts";

/** The failures that mean that there is no server to join, or no program that could run one; only `connect` reports them. */
const ABSENT: readonly ConnectionFailure["code"][] = [
  "unreachable",
  "not-found",
  "bad-path",
  "too-old",
  "too-new",
];

export interface ServerSettings {
  /** The address of a server that the user runs. If undefined, a server is started for the folder. */
  readonly url?: string | undefined;
  /** OpenCode's executable. If undefined, it is searched for. */
  readonly path?: string | undefined;
  readonly startTimeoutMs: number;
  /** Whether the started server uses a database that no other OpenCode uses. `serverEnv` names it. */
  readonly ownDatabase?: boolean | undefined;
}

export interface ConnectionOptions {
  /** The folder that the agents work in. */
  readonly directory: string;
  /** Read again at each attempt. */
  readonly settings: () => ServerSettings;
  /** The password that a user entered for this URL. */
  readonly password: (url: string) => Promise<string | undefined>;
  readonly ownServers: Pick<OwnServers, "adopt" | "search" | "start" | "stop">;
  /** The complete environment for starting a server. Read again at each start. */
  readonly env: Environment;
  /** Adapts the environment for a server that is being started. Defaults to no change. */
  readonly serverEnv?: ((env: Environment) => Promise<Environment>) | undefined;
  readonly permissions?: PermissionStore | undefined;
  /** See {@link Wanted.usedKey}. Read again at each search. */
  readonly usedKey?: (() => string | undefined) | undefined;
  /** The timeout of calls in milliseconds. Defaults to one minute. */
  readonly callTimeoutMs?: (() => number | undefined) | undefined;
  /** Shared by all connections, so that each server has one stream. */
  readonly events: ServerEvents;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An attempt to connect, shared by all who wait for it. */
interface Attempt {
  readonly how: "adopt" | "start";
  readonly abort: AbortController;
  readonly result: Promise<boolean>;
  waiting: number;
}

/** The connection to the server of one folder, across restarts of the server. */
export class OpenCodeConnection implements Disposable {
  /** Always the same object. While there is no connection, its calls reject with a `ServerFailure`. */
  readonly server: OpenCodeAgentServer;
  private readonly actions: Emitter<ConnectionAction>;
  private readonly states: Emitter<ConnectionState>;
  readonly onDidChangeState: Event<ConnectionState>;
  private readonly connects: Emitter<void>;
  /** Fires after each connect, when events arrive. Everything known before may be stale. */
  readonly onDidConnect: Event<void>;
  private readonly events: Emitter<ServerEvent>;
  private readonly directories = new SessionDirectories({
    onUse: (directory) => this.link?.add(directory),
    onRelease: async (directory) => this.link?.release(directory),
  });
  private current: ConnectionState = { kind: "disconnected" };
  private link: Link | undefined;
  private attempt: Attempt | undefined;
  /** The own server that was last searched for. */
  private wanted: Wanted | undefined;
  /** Whether that server uses the database of an OpenCode 2 that was found with it. */
  private sharesDatabase = false;
  private watched = false;
  private disposed = false;

  constructor(private readonly options: ConnectionOptions) {
    const onListenerError = logged(options.logger, "the server's connection");
    this.actions = new Emitter(onListenerError);
    this.states = new Emitter(onListenerError);
    this.onDidChangeState = this.states.event;
    this.connects = new Emitter(onListenerError);
    this.onDidConnect = this.connects.event;
    this.events = new Emitter(onListenerError);
    this.server = new OpenCodeAgentServer(
      () => this.link?.client,
      this.events.event,
      options.callTimeoutMs,
      this.directories,
      options.permissions,
    );
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** The process ID of a server that the extension started, while it is in use. */
  get serverPid(): number | undefined {
    return this.link?.serverPid;
  }

  /** The key of a server that the extension started, while it is in use; see {@link ConnectionOptions.usedKey}. */
  get serverKey(): string | undefined {
    return this.link?.serverKey;
  }

  /** Sets whether a user or a task relies on the events. Only then is the stream monitored for silence. */
  setWatched(watched: boolean): void {
    this.watched = watched;
    this.link?.setWatched(watched);
  }

  /** Joins a server that is already running for this folder. Starts none. Resolves to whether it joined. */
  async adopt(signal?: AbortSignal): Promise<boolean> {
    if (isUp(this.current)) return true;
    try {
      return await this.join(this.attempt ?? this.begin("adopt"), signal);
    } catch (error) {
      if (error instanceof ConnectionError || isCancelled(error)) return false;
      throw error;
    }
  }

  /** Connects, starting a server if none is running. Resolves when connected; rejects with a `ConnectionError`. */
  async connect(signal?: AbortSignal): Promise<void> {
    if (this.current.kind === "connected") return;
    if (this.current.kind === "reconnecting") {
      const outcome = this.outcome();
      this.link?.reopen();
      return unlessCancelled(outcome, signal);
    }
    if (this.attempt?.how === "adopt" && (await this.join(this.attempt, signal))) return;
    await this.join(this.attempt ?? this.begin("start"), signal);
  }

  /** Stops what runs for the folder at a server that the extension started, which others may go on using. */
  unload(): void {
    this.link?.unload();
  }

  /** Disconnects. The server keeps running for other folders and for its grace period. */
  async disconnect(): Promise<void> {
    this.leave();
  }

  /** Disconnects, and stops a server that the extension started. */
  async stopServer(): Promise<void> {
    await this.disconnect();
    if (this.wanted && !this.options.settings().url) await this.options.ownServers.stop(this.wanted);
  }

  /** The command that attaches a terminal to a session. Rejects with a `ConnectionError` if not connected. */
  async attachCommand(sessionID: string): Promise<ProgramCall> {
    const access = this.link?.access;
    if (!access) throw new ConnectionError(failures.lost());
    const { env, settings } = this.options;
    const { executable } = await findOpenCode({
      configuredPath: settings().path ?? "",
      env,
      home: homedir(),
    });
    await requireSupported(executable, env);
    const directory = this.directories.of(sessionID) ?? (await realpath(this.options.directory));
    return attachCommand(executable, access, directory, sessionID);
  }

  /** Like {@link dispose}, but permanently: a server that the extension started ends, unless another folder uses it. */
  finish(): void {
    this.link?.finish();
    this.link = undefined;
    this.dispose();
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.leave();
    for (const emitter of [this.actions, this.states, this.connects, this.events]) emitter.dispose();
  }

  private begin(how: Attempt["how"]): Attempt {
    if (this.disposed) throw cancelled();
    const abort = new AbortController();
    const result = this.establish(how, abort.signal).finally(() => {
      if (this.attempt === attempt) this.attempt = undefined;
    });
    const attempt: Attempt = { how, abort, result, waiting: 0 };
    this.attempt = attempt;
    return attempt;
  }

  /** Waits for the attempt until the signal aborts. An attempt that nobody waits for any more is cancelled. */
  private async join(attempt: Attempt, signal?: AbortSignal): Promise<boolean> {
    attempt.waiting++;
    try {
      return await unlessCancelled(attempt.result, signal);
    } finally {
      if (--attempt.waiting === 0 && this.attempt === attempt) this.leave();
    }
  }

  private leave(): void {
    const { attempt } = this;
    this.attempt = undefined;
    attempt?.abort.abort();
    this.dispatch({ type: "left" });
  }

  /** Finds a server and opens its stream. False if there was none to adopt. */
  private async establish(how: Attempt["how"], signal: AbortSignal): Promise<boolean> {
    const onProgress = (detail: Text) => {
      if (!signal.aborted) this.dispatch({ type: "progress", detail });
    };
    onProgress(sentence("Looking for a running OpenCode server…"));
    try {
      const directory = await realpath(this.options.directory);
      const attachment = await this.find(how, { signal, onProgress });
      if (signal.aborted) attachment?.leave();
      signal.throwIfAborted();
      if (attachment) await unlessCancelled(this.open(attachment, directory), signal);
      else this.dispatch({ type: "left" });
      return attachment !== undefined;
    } catch (error) {
      // Whoever cancelled the attempt has set the state, and a new attempt may have begun.
      if (signal.aborted) throw cancelled();
      // Another folder had the server stopped, which has set the state, too.
      if (isCancelled(error)) throw new ConnectionError(failures.lost());
      const failure = this.failureOf(error);
      const isJustAbsent = how === "adopt" && ABSENT.includes(failure.code);
      this.dispatch(isJustAbsent ? { type: "left" } : { type: "failed", failure });
      throw new ConnectionError(failure);
    }
  }

  private async find(how: Attempt["how"], search: Search): Promise<Attachment | undefined> {
    const { settings, password, env, ownServers } = this.options;
    const { url } = settings();
    if (url) return findServerByUrl({ url, password, env }, search);
    search.onProgress(sentence("Looking for OpenCode…"));
    return ownServers.search(async () => {
      this.wanted = await this.ownServer();
      search.signal.throwIfAborted();
      const { wanted } = this;
      const attachment =
        how === "adopt" ? await ownServers.adopt(wanted, search) : await ownServers.start(wanted, search);
      // What is stopped later is the server that is used, not one that others use by then.
      if (attachment && this.wanted === wanted)
        this.wanted = {
          ...wanted,
          get usedKey() {
            return attachment.key;
          },
        };
      return attachment;
    });
  }

  private async ownServer(): Promise<Wanted> {
    const { settings, usedKey } = this.options;
    // Its tasks go on, whatever is wrong with the program by now.
    const program = await this.ownProgram().catch((error: unknown) => this.failureOf(error));
    return { program, usedKey: usedKey?.(), startTimeoutMs: settings().startTimeoutMs };
  }

  private async ownProgram(): Promise<ServerProgram> {
    const { settings, env, serverEnv } = this.options;
    const { path, ownDatabase } = settings();
    const found = await findOpenCode({ configuredPath: path ?? "", env, home: homedir() });
    const { executable } = found;
    if (found.others.length > 0) this.options.logger.info(describeChoice(found));
    this.sharesDatabase =
      !ownDatabase && !env[DATABASE] && found.others.some(({ version }) => supportOf(version) === "too-new");
    return { executable, env: (await serverEnv?.(env)) ?? env };
  }

  /** Resolves once events arrive. Rejects if they do not. */
  private open(attachment: Attachment, directory: string): Promise<void> {
    const { events, clock, logger } = this.options;
    const decode = createEventDecoder(logger, directory);
    const { directories } = this;
    const sharesDatabase = attachment.own && this.sharesDatabase;
    const outcome = this.outcome();
    this.link = new Link({
      attachment,
      directory,
      directories,
      events,
      clock,
      logger,
      dispatch: (action) => this.dispatch(action.type === "opened" ? { ...action, sharesDatabase } : action),
      onPayload: (payload, from) => {
        const event = decode(payload, from);
        if (event && (event.type === "heartbeat" || directories.accepts(event, sessionOf(event))))
          this.events.fire(event);
      },
    });
    this.link.setWatched(this.watched);
    return outcome;
  }

  /** The outcome of connecting: resolves once connected, rejects once it failed or was cancelled. */
  private outcome(): Promise<void> {
    return new Promise((resolve, reject) => {
      const subscription = this.actions.event((action) => {
        if (action.type === "progress" || this.current.kind === "connecting") return;
        subscription.dispose();
        if (action.type === "opened") resolve();
        else reject("failure" in action ? new ConnectionError(action.failure) : cancelled());
      });
    });
  }

  private failureOf(error: unknown): ConnectionFailure {
    if (error instanceof ConnectionError) return error.failure;
    this.options.logger.error("Connecting failed.", error);
    return failures.startFailed(textOf(error));
  }

  private dispatch(action: ConnectionAction): void {
    const before = this.current;
    this.current = reduce(before, action);
    const { kind } = this.current;
    if (kind === "failed" || kind === "disconnected") {
      this.link?.dispose();
      this.link = undefined;
    }
    if (this.current !== before) this.states.fire(this.current);
    if (action.type === "opened") this.connects.fire();
    this.actions.fire(action);
  }
}

function describeChoice({ others, ...chosen }: FoundOpenCode): string {
  const [used, ...unused] = [chosen, ...others].map(
    ({ executable, version = "of unknown version" }) => `OpenCode ${version} (${executable})`,
  );
  return `Using ${used}, the newest supported version; not using ${unused.join(", ")}.`;
}
