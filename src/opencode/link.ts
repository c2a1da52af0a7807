import type { InstanceDisposeData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { english, sentence } from "../engine/sentence.ts";
import type { Attachment, RunningServer } from "./attachment.ts";
import { call, ignored } from "./call.ts";
import { cancelled } from "./cancel.ts";
import { createClient } from "./client.ts";
import type { ServerClient } from "./client.ts";
import type { ConnectionAction } from "./connection-state.ts";
import { EventStream } from "./event-stream.ts";
import { failures } from "./failures.ts";
import { loadFolder } from "./folder-loading.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import type { Follower, Following, ServerEvents } from "./server-events.ts";
import type { SessionDirectories } from "./session-directories.ts";

/** How long a server may take to become healthy before its stream is opened. */
const HEALTH_TIMEOUT_MS = 5_000;
const UNLOAD_TIMEOUT_MS = 10_000;
const PREPARING = sentence("OpenCode is preparing its plugins. The first time, this can take a minute…");

export interface LinkOptions {
  readonly attachment: Attachment;
  readonly directory: string;
  readonly directories: SessionDirectories;
  readonly events: ServerEvents;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dispatch: (action: ConnectionAction) => void;
  /** @param directory the directory of the event, as the server writes it. Undefined for events of the server itself. */
  readonly onPayload: (payload: unknown, directory: string | undefined) => void;
}

/** A server in use: its client and its event stream, maintained across restarts. Dispatches nothing after `dispose`. */
export class Link implements Disposable {
  private readonly stream: EventStream;
  private running: RunningServer | undefined;
  private following: Following | undefined;
  private version = "";
  /** Undefined while events do not arrive, or another program may listen at the address: send nothing then. */
  client: ServerClient | undefined;

  constructor(private readonly options: LinkOptions) {
    const { attachment, clock, logger, dispatch, onPayload } = options;
    const { own } = attachment;
    this.stream = new EventStream({
      clock,
      follow: (follower, signal) => this.follow(follower, signal),
      onOpen: () => {
        const { url = "" } = this.running ?? {};
        logger.info(`Connected to OpenCode ${this.version} at ${url}.`);
        dispatch({ type: "opened", url, version: this.version, own });
      },
      onPayload,
      onCut: ({ reason, error, cuts }) => {
        this.client = undefined;
        logger.warn(`${english(reason)} Attempt ${cuts} follows.`);
        const failure = error instanceof ConnectionError ? error.failure : failures.noEvents(reason);
        dispatch({ type: "cut", reason, cuts, own, failure });
      },
    });
  }

  /** How to reach the server now. Undefined while there is no client. */
  get access(): RunningServer | undefined {
    return this.client && this.running;
  }

  get serverPid(): number | undefined {
    return this.running?.pid;
  }

  get serverKey(): string | undefined {
    return this.options.attachment.key;
  }

  setWatched(watched: boolean): void {
    this.stream.setWatched(watched);
  }

  /** Also follows the events of this directory. */
  add(directory: string): void {
    this.following?.add(directory);
  }

  /** Stops following this directory, and makes the server release what it keeps for it. Rejects with a `ServerFailure`. */
  async release(directory: string): Promise<void> {
    this.following?.remove(directory);
    const { client } = this;
    if (client) await dispose(client, directory);
  }

  /** Retries immediately, without waiting for the next attempt. */
  reopen(): void {
    this.stream.reopen();
  }

  dispose(): void {
    this.stream.dispose();
    this.options.attachment.leave();
  }

  /** Like {@link dispose}, but permanently; see {@link Attachment.finish}. */
  finish(): void {
    this.unload();
    this.stream.dispose();
    this.options.attachment.finish();
  }

  /** Makes an own server release what it keeps for the folder and its worktrees: agents, language servers, MCP servers. */
  unload(): void {
    const { client, following } = this;
    const { directories, attachment } = this.options;
    const { folder } = directories;
    if (!client || !attachment.own || folder === undefined) return;
    // A worktree can be open as a folder of its own.
    for (const directory of [folder, ...directories.used()].filter((one) => !following?.isShared(one)))
      // If this fails, it is released when the server ends.
      dispose(client, directory).catch(() => undefined);
  }

  private async follow(follower: Follower, signal: AbortSignal): Promise<Following> {
    const { attachment, directory, directories, events, clock, logger, dispatch } = this.options;
    this.client = this.following = undefined;
    const server = await attachment.running(signal);
    signal.throwIfAborted();
    if (server === "stopped") throw this.endLink({ type: "left" });
    if ("code" in server) throw this.endLink({ type: "failed", failure: server });
    this.use(server);
    const health = await awaitHealth(server, HEALTH_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const failure = healthFailure(health, server.url, attachment.own);
    if (failure) throw this.failed(failure);
    if (health.kind === "healthy") this.version = health.version;
    const client = createClient(server, directory);
    const folder = await loadFolder(client, {
      clock,
      withinMs: attachment.loadTimeoutMs,
      signal,
      onSlow: () => {
        logger.info(english(PREPARING));
        dispatch({ type: "progress", detail: PREPARING });
      },
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error instanceof ConnectionError ? this.failed(error.failure) : error;
    });
    signal.throwIfAborted();
    this.client = createClient(server, directory, folder);
    directories.setFolder(folder.directory);
    this.following = events.follow(server, folder.directory, follower);
    for (const worktree of directories.used()) this.following.add(worktree);
    return this.following;
  }

  /** Gives up a server with a problem that lasts. Returns the error to throw. */
  private failed(failure: ConnectionFailure): Error {
    if (!this.isFinal(failure)) return new ConnectionError(failure);
    // It keeps its version and the configuration that it has read, so that connecting again must start another one.
    this.options.attachment.giveUp();
    return this.endLink({ type: "failed", failure });
  }

  private isFinal({ code }: ConnectionFailure): boolean {
    if (/too-(old|new)$/.test(code)) return true;
    // An own server may just have crashed; its attachment then reports the restart or the end soon.
    if (this.options.attachment.own) return code === "folder-refused";
    // Where OpenCode has responded, something else, such as a proxy, does so only until it is back.
    return code === "wrong-password" || (code === "not-opencode" && this.version === "");
  }

  private use(server: RunningServer): void {
    const { ended } = server;
    const isKnown = this.running?.ended === ended;
    this.running = server;
    if (isKnown) return;
    // Weak, because a server may outlive many links.
    const link = new WeakRef(this);
    void ended?.then(() => link.deref()?.noticeEnd(ended));
  }

  private noticeEnd(ended: Promise<unknown>): void {
    if (this.running?.ended !== ended) return;
    this.running = this.client = undefined;
    this.stream.reopen(sentence("The OpenCode server stopped unexpectedly."));
  }

  /** Dispatches an action that disposes this link. Returns the error to throw. */
  private endLink(action: ConnectionAction): Error {
    this.options.dispatch(action);
    return cancelled();
  }
}

/** Makes the server release what it keeps for a directory. */
async function dispose(client: ServerClient, directory: string): Promise<void> {
  const route = { url: "/instance/dispose" } satisfies InstanceDisposeData;
  await call(client, "POST", { ...route, directory }, ignored, UNLOAD_TIMEOUT_MS);
}
