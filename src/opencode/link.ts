import type { EventSubscribeData } from "@opencode-ai/sdk/v2/types";
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
import { folderLoaded } from "./folder-loading.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import { describeServerError } from "./server-error.ts";

/** How long a server may take to say that it is well, before its stream is opened. */
const HEALTH_TIMEOUT_MS = 3_000;

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
  onLost(): void;
}

/** A server in use: its client and its event stream, kept up over restarts. Tells nothing after `dispose`. */
export class Link implements Disposable {
  private readonly stream: EventStream;
  private currentClient: ServerClient;
  private version = "";

  constructor(
    private readonly attachment: Attachment,
    private readonly directory: string,
    private readonly clock: Clock,
    private readonly listener: LinkListener,
  ) {
    this.currentClient = createClient(attachment.access, directory);
    this.stream = new EventStream({
      ready: (signal) => this.ready(signal),
      subscribe: (fetch, onError) => this.subscribe(fetch, onError),
      clock,
      onOpen: () => listener.onOpen({ url: attachment.access.url, version: this.version }),
      onPayload: (payload) => listener.onPayload(payload),
      onCut: ({ error, ...cut }) =>
        listener.onCut(cut, error instanceof ConnectionError ? error.failure : failures.noEvents(cut.reason)),
    });
    attachment.watch({
      onRestarted: () => this.follow(),
      onFailed: (failure) => listener.onFailed(failure),
      onStopped: () => listener.onStopped(),
      onLost: () => listener.onLost(),
    });
  }

  get client(): ServerClient {
    return this.currentClient;
  }

  /** How the server is reached now. */
  get access(): ServerAccess {
    return this.attachment.access;
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

  private follow(): void {
    this.currentClient = createClient(this.attachment.access, this.directory);
    this.stream.reopen(sentence("The OpenCode server was restarted."));
  }

  private async ready(signal: AbortSignal): Promise<void> {
    const { access, own, loadTimeoutMs } = this.attachment;
    const health = await awaitHealth(access, HEALTH_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const failure = healthFailure(health, access.url);
    if (failure) {
      // A server of ours may be on the move: its watchdog says where it is, or that it is no more.
      const isFinal = failure.code !== "unreachable" && (!own || failure.code === "too-old");
      if (isFinal) this.listener.onFailed(failure);
      throw new ConnectionError(failure);
    }
    if (health.kind === "healthy") this.version = health.version;
    await folderLoaded(this.currentClient, {
      clock: this.clock,
      withinMs: loadTimeoutMs,
      signal,
      onSlow: () => this.listener.onLoading(),
    });
  }

  private async subscribe(
    fetch: (request: Request) => Promise<Response>,
    onSseError: (error: unknown) => void,
  ): Promise<AsyncIterable<unknown>> {
    const client = createClient(this.attachment.access, this.directory, async (request) =>
      accepted(await fetch(request)),
    );
    const route = { url: "/event" } satisfies EventSubscribeData;
    const { stream } = await client.sse.get<unknown>({ ...route, sseMaxRetryAttempts: 1, onSseError });
    return stream;
  }
}

/** The SDK tells only the status; why the server refuses (a configuration that it cannot read) is in the body. */
async function accepted(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = await response.text();
  throw new ConnectionError(failures.refusesFolder(describeServerError(parsed(body))));
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
