import type { InstanceDisposeData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { english, sentence } from "../engine/sentence.ts";
import type { Attachment, RunningServer } from "./attachment.ts";
import { cancelled, limited } from "./cancel.ts";
import { createClient } from "./client.ts";
import type { ServerClient } from "./client.ts";
import type { ConnectionAction } from "./connection-state.ts";
import { EventStream } from "./event-stream.ts";
import { failures } from "./failures.ts";
import { loadFolder } from "./folder-loading.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import type { Follower, Following, ServerEvents } from "./server-events.ts";

/** How long a server may take to become healthy before its stream is opened. */
const HEALTH_TIMEOUT_MS = 5_000;
const UNLOAD_TIMEOUT_MS = 10_000;
const PREPARING = sentence("OpenCode is preparing its plugins. The first time, this can take a minute…");

export interface LinkOptions {
  readonly attachment: Attachment;
  readonly directory: string;
  readonly events: ServerEvents;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dispatch: (action: ConnectionAction) => void;
  readonly onPayload: (payload: unknown) => void;
}

/** A server in use: its client and its event stream, maintained across restarts. Dispatches nothing after `dispose`. */
export class Link implements Disposable {
  private readonly stream: EventStream;
  private running: RunningServer | undefined;
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

  setWatched(watched: boolean): void {
    this.stream.setWatched(watched);
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
    const { attachment } = this.options;
    if (attachment.own) this.unload();
    this.stream.dispose();
    attachment.finish();
  }

  /** Makes the server release what it keeps for the folder (language servers, MCP servers). */
  private unload(): void {
    const { client } = this;
    if (!client) return;
    const route = { url: "/instance/dispose" } satisfies InstanceDisposeData;
    limited(UNLOAD_TIMEOUT_MS, (signal) => client.request("POST", route, signal))
      // If this fails, it is released when the server ends.
      .catch(() => undefined);
  }

  private async follow(follower: Follower, signal: AbortSignal): Promise<Following> {
    const { attachment, directory, events, clock, logger, dispatch } = this.options;
    this.client = undefined;
    const server = await attachment.running(signal);
    signal.throwIfAborted();
    if (server === "stopped") throw this.endLink({ type: "left" });
    if ("code" in server) throw this.endLink({ type: "failed", failure: server });
    this.use(server);
    const health = await awaitHealth(server, HEALTH_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const failure = healthFailure(health, server.url);
    if (failure) {
      // An own server may just have crashed; its attachment then reports the restart or the end soon.
      const isFinal =
        failure.code !== "unreachable" && (!attachment.own || /too-(old|new)$/.test(failure.code));
      throw isFinal ? this.endLink({ type: "failed", failure }) : new ConnectionError(failure);
    }
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
    });
    signal.throwIfAborted();
    this.client = client;
    return events.follow(server, folder, follower);
  }

  private use(server: RunningServer): void {
    this.running = server;
    void server.ended?.then(() => {
      if (this.running !== server) return;
      this.running = this.client = undefined;
      this.stream.reopen(sentence("The OpenCode server stopped unexpectedly."));
    });
  }

  /** Dispatches an action that disposes this link. Returns the error to throw. */
  private endLink(action: ConnectionAction): Error {
    this.options.dispatch(action);
    return cancelled();
  }
}
