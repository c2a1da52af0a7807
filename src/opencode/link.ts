import type { InstanceDisposeData } from "@opencode-ai/sdk/v2/types";
import { ConnectionError } from "../engine/connection.ts";
import type { ConnectionFailure } from "../engine/connection.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { ServerAccess } from "./access.ts";
import { createClient } from "./client.ts";
import type { ServerClient } from "./client.ts";
import type { Attachment } from "./attachment.ts";
import { EventStream } from "./event-stream.ts";
import type { StreamCut } from "./event-stream.ts";
import { failures } from "./failures.ts";
import { loadFolder } from "./folder-loading.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import type { Follower, Following, ServerEvents } from "./server-events.ts";
import { limited } from "./time-limit.ts";

/** How long a server may take to say that it is well, before its stream is opened. */
const HEALTH_TIMEOUT_MS = 5_000;

const UNLOAD_TIMEOUT_MS = 10_000;

export interface LinkListener {
  /** The server is well, but takes its time to load the folder. */
  onLoading(): void;
  /** Events flow (again); what happened before may have been missed. */
  onOpen(server: { url: string; version: string }): void;
  onPayload(payload: unknown): void;
  /** Events do not flow; the link tries again. The failure is for who cannot wait. */
  onCut(cut: Omit<StreamCut, "error">, failure: ConnectionFailure): void;
  /** The server cannot be used, and trying again is no use. */
  onFailed(failure: ConnectionFailure): void;
  onStopped(): void;
}

/** How a server is reached. */
interface Reached {
  readonly access: ServerAccess;
  readonly client: ServerClient;
  /** The folder, as the server writes it. */
  readonly directory: string;
}

/** A server in use: its client and its event stream, kept up over restarts. Tells nothing after `dispose`. */
export class Link implements Disposable {
  private readonly stream: EventStream;
  /** Undefined: nobody vouches for who listens at the server's address. */
  private current: Reached | undefined;
  private version = "";

  constructor(
    private readonly attachment: Attachment,
    private readonly directory: string,
    private readonly events: ServerEvents,
    private readonly clock: Clock,
    private readonly listener: LinkListener,
  ) {
    this.stream = new EventStream({
      ready: (signal) => this.ready(signal),
      follow: (follower) => this.follow(follower),
      clock,
      onOpen: () => listener.onOpen({ url: this.current?.access.url ?? "", version: this.version }),
      onPayload: (payload) => listener.onPayload(payload),
      onCut: ({ error, ...cut }) => {
        this.current = undefined;
        listener.onCut(cut, error instanceof ConnectionError ? error.failure : failures.noEvents(cut.reason));
      },
    });
    attachment.watch({
      onCrashed: () => {
        this.current = undefined;
        this.stream.cut(sentence("The OpenCode server ended unexpectedly."));
      },
      onRestarted: () => this.stream.hurry(),
      onFailed: (failure) => listener.onFailed(failure),
      onStopped: () => listener.onStopped(),
    });
  }

  /** Undefined: events do not flow, and nothing may be sent. */
  get client(): ServerClient | undefined {
    return this.current?.client;
  }

  /** How the server is reached now. */
  get access(): ServerAccess | undefined {
    return this.current?.access;
  }

  get serverPid(): number | undefined {
    return this.attachment.pid;
  }

  setWatched(watched: boolean): void {
    this.stream.setWatched(watched);
  }

  /** Does not wait for the time of the next attempt. */
  reopen(): void {
    this.stream.reopen(sentence("The connection is made anew."));
  }

  dispose(): void {
    this.stream.dispose();
    this.attachment.leave();
  }

  /** As {@link dispose}; see {@link Attachment.finish}. */
  finish(): void {
    if (this.attachment.own) this.unload();
    this.stream.dispose();
    this.attachment.finish();
  }

  /** What a server keeps for a folder (language servers, MCP servers) it keeps until it is told. */
  private unload(): void {
    const { client } = this;
    if (!client) return;
    const route = { url: "/instance/dispose" } satisfies InstanceDisposeData;
    limited(UNLOAD_TIMEOUT_MS, (signal) => client.request("POST", route, signal))
      // It goes with the server at the latest.
      .catch(() => undefined);
  }

  private async ready(signal: AbortSignal): Promise<void> {
    const { own, loadTimeoutMs } = this.attachment;
    this.current = undefined;
    const access = await this.attachment.vouched(signal);
    const health = await awaitHealth(access, HEALTH_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const failure = healthFailure(health, access.url);
    if (failure) {
      // A server of ours may just have crashed: where it runs next, or that it is no more, is told soon.
      const isFinal = failure.code !== "unreachable" && (!own || failure.code === "too-old");
      if (isFinal) this.listener.onFailed(failure);
      throw new ConnectionError(failure);
    }
    if (health.kind === "healthy") this.version = health.version;
    const client = createClient(access, this.directory);
    const directory = await loadFolder(client, {
      clock: this.clock,
      withinMs: loadTimeoutMs,
      signal,
      onSlow: () => this.listener.onLoading(),
    });
    signal.throwIfAborted();
    this.current = { access, client, directory };
  }

  private follow(follower: Follower): Following {
    if (!this.current) throw new ConnectionError(failures.lost());
    const { access, directory } = this.current;
    return this.events.follow(access, directory, follower);
  }
}
