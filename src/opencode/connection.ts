import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { ConnectionError } from "../engine/connection.ts";
import type { ConnectionFailure, ConnectionState, ProgramCall } from "../engine/connection.ts";
import { textOf } from "../engine/errors.ts";
import { Emitter } from "../engine/event.ts";
import type { CancelSignal, Disposable, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { ServerEvent } from "../engine/server-model.ts";
import { OpenCodeAgentServer } from "./agent-server.ts";
import { attachCommand } from "./attach-command.ts";
import type { Attachment, Search } from "./attachment.ts";
import { isUp, reduce, type ConnectionAction } from "./connection-state.ts";
import { cancelled, isCancelled, unlessCancelled } from "./cancel.ts";
import { createEventDecoder } from "./events.ts";
import { failures } from "./failures.ts";
import { Link } from "./link.ts";
import { findOpenCode } from "./locate.ts";
import type { OwnServers, Wanted } from "./own-servers.ts";
import type { Environment } from "./server-program.ts";
import type { ServerEvents } from "./server-events.ts";
import { findServerByUrl } from "./url-server.ts";

/** Why there can be no server to join, which is said only to who wants one. */
const ABSENT: readonly ConnectionFailure["code"][] = ["unreachable", "not-found", "bad-path"];

export interface ServerSettings {
  /** Address of a server that somebody else runs; without it one is run for the folder. */
  readonly url?: string | undefined;
  /** OpenCode's executable; without it, it is searched for. */
  readonly path?: string | undefined;
  readonly startTimeoutMs: number;
}

export interface ConnectionOptions {
  /** The folder that the agents work in. */
  readonly directory: string;
  /** Read anew at each attempt. */
  readonly settings: () => ServerSettings;
  /** The password that a user entered for this URL. */
  readonly password: (url: string) => Promise<string | undefined>;
  readonly ownServers: Pick<OwnServers, "adopt" | "start" | "stop">;
  /** Whole environment of a server that is started; read anew at each start. */
  readonly env: Environment;
  /** What becomes of it for a server that is started now; the same if left out. */
  readonly serverEnv?: ((env: Environment) => Promise<Environment>) | undefined;
  /** How long a call may take, in milliseconds; a minute if left out. */
  readonly callTimeoutMs?: number | undefined;
  /** Shared by all connections, so that each server has one stream. */
  readonly events: ServerEvents;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One try at getting connected, shared by all who want it meanwhile. */
interface Attempt {
  readonly how: "adopt" | "start";
  readonly abort: AbortController;
  readonly result: Promise<boolean>;
  waiting: number;
}

/** The way to the server of one folder, over all its restarts. */
export class OpenCodeConnection implements Disposable {
  /** Usable while connected; calls made otherwise reject with a `ServerFailure`. Stays the same object for good. */
  readonly server: OpenCodeAgentServer;
  private readonly actions: Emitter<ConnectionAction>;
  private readonly states: Emitter<ConnectionState>;
  readonly onDidChangeState: Event<ConnectionState>;
  private readonly connects: Emitter<void>;
  /** After each (re)connect, once events flow: whatever was known before may be stale. */
  readonly onDidConnect: Event<void>;
  private readonly events: Emitter<ServerEvent>;
  private current: ConnectionState = { kind: "disconnected" };
  private link: Link | undefined;
  private attempt: Attempt | undefined;
  /** The server of ours that was looked for last. */
  private wanted: Wanted | undefined;
  private watched = false;
  private disposed = false;

  constructor(private readonly options: ConnectionOptions) {
    const onListenerError = (error: unknown) => options.logger.error("A listener failed.", error);
    this.actions = new Emitter(onListenerError);
    this.states = new Emitter(onListenerError);
    this.onDidChangeState = this.states.event;
    this.connects = new Emitter(onListenerError);
    this.onDidConnect = this.connects.event;
    this.events = new Emitter(onListenerError);
    this.server = new OpenCodeAgentServer(() => this.link?.client, this.events.event, options.callTimeoutMs);
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** The process of a server that this product started, while it is used. */
  get serverPid(): number | undefined {
    return this.link?.serverPid;
  }

  /** Whether somebody relies on the events now: only then is the stream's silence watched for. */
  setWatched(watched: boolean): void {
    this.watched = watched;
    this.link?.setWatched(watched);
  }

  /** Joins a server that runs already for this folder, if there is one; starts none. Resolves to whether it joined. */
  async adopt(): Promise<boolean> {
    if (isUp(this.current)) return true;
    try {
      return await this.join(this.attempt ?? this.begin("adopt"));
    } catch (error) {
      if (error instanceof ConnectionError || isCancelled(error)) return false;
      throw error;
    }
  }

  /** Connects, starting a server where none runs. Resolves when connected; rejects with a `ConnectionError`. */
  async connect(signal?: CancelSignal): Promise<void> {
    if (this.current.kind === "connected") return;
    if (this.current.kind === "reconnecting") {
      const outcome = this.outcome();
      this.link?.reopen();
      return unlessCancelled(outcome, signal);
    }
    if (this.attempt?.how === "adopt" && (await this.join(this.attempt, signal))) return;
    await this.join(this.attempt ?? this.begin("start"), signal);
  }

  /** Leaves the server. It stays up for others and for its grace period. */
  async disconnect(): Promise<void> {
    this.leave();
  }

  /** Ends a server that this product started, and leaves it. */
  async stopServer(): Promise<void> {
    await this.disconnect();
    if (this.wanted && !this.options.settings().url) await this.options.ownServers.stop(this.wanted);
  }

  /** What a terminal runs to join a session of the server. Rejects with a `ConnectionError` where that cannot be. */
  async attachCommand(sessionID: string): Promise<ProgramCall> {
    const access = this.link?.access;
    if (!access) throw new ConnectionError(failures.lost());
    const { env, settings } = this.options;
    const executable = await findOpenCode({ configuredPath: settings().path ?? "", env, home: homedir() });
    return attachCommand(executable, access, await realpath(this.options.directory), sessionID);
  }

  /** As {@link dispose}, for good: a server that this product started ends, unless somebody else uses it. */
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

  /** Waits for the attempt as long as the signal allows; one that nobody waits for any more is given up. */
  private async join(attempt: Attempt, signal?: CancelSignal): Promise<boolean> {
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

  /** Finds a server and opens its stream. False: there was none to adopt. */
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
      // Whoever gave the attempt up has set the state, and the next one may have begun.
      if (signal.aborted) throw cancelled();
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
    this.wanted = await this.ownServer();
    search.signal.throwIfAborted();
    return how === "adopt" ? ownServers.adopt(this.wanted, search) : ownServers.start(this.wanted, search);
  }

  private async ownServer(): Promise<Wanted> {
    const { settings, env, serverEnv } = this.options;
    const { path, startTimeoutMs } = settings();
    const executable = await findOpenCode({ configuredPath: path ?? "", env, home: homedir() });
    return { program: { executable, env: (await serverEnv?.(env)) ?? env }, startTimeoutMs };
  }

  /** Resolves once events flow; rejects where they do not. */
  private open(attachment: Attachment, directory: string): Promise<void> {
    const { events, clock, logger } = this.options;
    const decode = createEventDecoder(logger, directory);
    const outcome = this.outcome();
    this.link = new Link({
      attachment,
      directory,
      events,
      clock,
      logger,
      dispatch: (action) => this.dispatch(action),
      onPayload: (payload) => {
        const event = decode(payload);
        if (event) this.events.fire(event);
      },
    });
    this.link.setWatched(this.watched);
    return outcome;
  }

  /** How the present way to a connection ends: resolves once connected, rejects once that is put off or given up. */
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
