import type { GlobalEventData } from "@opencode-ai/sdk/v2/types";
import { UserFacingError } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import { authorizationHeader } from "./access.ts";
import type { ServerAccess } from "./access.ts";
import { endingWith } from "./client.ts";
import { awaitHealth } from "./health.ts";

/** The server sends a heartbeat every 10 s. After two missed ones, the stream counts as dead. */
const SILENCE_LIMIT_MS = 25_000;
/** The first event normally arrives immediately. After this time, the request counts as lost. */
const OPEN_TIMEOUT_MS = 10_000;

/** Receives the events of one folder of a server, and of directories that are added to it. */
export interface Follower {
  /** Events arrive from now on. */
  onOpen(): void;
  /** @param directory where it happened. Undefined for events of the server itself, such as heartbeats. */
  onPayload(payload: unknown, directory: string | undefined): void;
  /** No more events will arrive. `error` is the reason, or undefined if the server ended the stream. */
  onEnd(error?: unknown): void;
}

export interface Following extends Disposable {
  /** Whether to monitor the stream for silence. Costs a timer, so set it only while the events are needed. */
  setWatched(watched: boolean): void;
  /** Also follows the events of this directory. */
  add(directory: string): void;
  remove(directory: string): void;
  /** Whether others follow the events of this directory, too. */
  isShared(directory: string): boolean;
}

/** The event streams of all servers. All followers of a server share one stream. */
export class ServerEvents {
  private readonly streams = new Map<string, ServerStream>();

  constructor(private readonly clock: Clock) {}

  /** @param directory the folder, as the server writes it */
  follow(access: ServerAccess, directory: string, follower: Follower): Following {
    const key = JSON.stringify([access.url, access.username, access.password]);
    let stream = this.streams.get(key);
    if (!stream) {
      stream = new ServerStream(access, this.clock, () => this.streams.delete(key));
      this.streams.set(key, stream);
    }
    return stream.add(directory, follower);
  }
}

/** An item of the stream. Events of the server itself, such as heartbeats, have no folder. */
interface Item {
  readonly directory?: string;
  readonly payload: { readonly type: string };
}

/** The stream of one server, open until it breaks or its last follower leaves. */
class ServerStream {
  private readonly followers = new Map<string, Set<Follower>>();
  private readonly watching = new Set<Follower>();
  private readonly abort = new AbortController();
  private readonly deadline: Disposable;
  private isOpen = false;
  /** When data was last received. Undefined before the response. */
  private lastSign: number | undefined;
  private silence: Disposable | undefined;

  constructor(
    private readonly access: ServerAccess,
    private readonly clock: Clock,
    private readonly onEnded: () => void,
  ) {
    this.deadline = clock.after(OPEN_TIMEOUT_MS, () =>
      this.end(new UserFacingError(sentence("OpenCode didn't open its event stream."))),
    );
    this.read().then(
      () => this.end(),
      (error: unknown) => this.end(error),
    );
  }

  add(directory: string, follower: Follower): Following {
    const directories = new Set<string>();
    const add = (one: string): void => {
      directories.add(one);
      this.followers.set(one, (this.followers.get(one) ?? new Set()).add(follower));
    };
    const remove = (one: string): void => {
      const followers = this.followers.get(one);
      if (!directories.delete(one) || !followers) return;
      followers.delete(follower);
      if (followers.size === 0) this.followers.delete(one);
    };
    add(directory);
    if (this.isOpen) follower.onOpen();
    const setWatched = (watched: boolean): void => {
      if (watched) this.watching.add(follower);
      else this.watching.delete(follower);
      // Nothing was measured until now, so the clock must do.
      const left = (this.lastSign ?? 0) + SILENCE_LIMIT_MS - this.clock.now();
      if (!this.silence || this.watching.size === 0) this.watchSilence(Math.min(left, SILENCE_LIMIT_MS));
    };
    return {
      setWatched,
      add,
      remove,
      isShared: (one) => (this.followers.get(one)?.size ?? 0) > 1,
      dispose: () => {
        if (directories.size === 0) return;
        setWatched(false);
        for (const one of directories) remove(one);
        if (this.followers.size === 0) this.end();
      },
    };
  }

  /** Reads the stream line by line. Each event is one line, `data: {…}`. */
  private async read(): Promise<void> {
    const { access } = this;
    const route = { url: "/global/event" } satisfies GlobalEventData;
    const { signal } = this.abort;
    const headers = authorizationHeader(access);
    // A redirect could send the password to another server.
    const answer = await (access.fetch ?? fetch)(access.url + route.url, {
      headers,
      redirect: "error",
      signal,
    });
    const { ok, status, body } = endingWith(signal, answer);
    if (!ok || !body) throw new Error(`HTTP ${status}`);
    this.lastSign = this.clock.now();
    this.watchSilence();
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of body as AsyncIterable<Uint8Array>) {
      // Incomplete events count as activity too.
      this.lastSign = this.clock.now();
      this.watchSilence();
      const text = decoder.decode(bytes, { stream: true });
      const end = text.lastIndexOf("\n");
      if (end >= 0) {
        const lines = (rest + text.slice(0, end)).split("\n");
        rest = "";
        for (const line of lines)
          if (line.startsWith("data:")) this.take(JSON.parse(line.slice("data:".length)) as Item);
      }
      rest += text.slice(end + 1);
    }
  }

  /** Distributes an event. The server repeats events as type `sync`, which the followers ignore as unknown. */
  private take({ directory, payload }: Item): void {
    if (payload.type === "server.connected") void this.open();
    if (!this.isOpen) return;
    const isUnloaded = payload.type === "server.instance.disposed";
    for (const follower of directory === undefined ? this.all() : (this.followers.get(directory) ?? []))
      try {
        if (isUnloaded) follower.onEnd();
        else follower.onPayload(payload, directory);
      } catch (error) {
        // The events of other folders continue.
        follower.onEnd(error);
      }
  }

  /** The server forwards folder events some time after its first event. A successful probe shows that it does. */
  private async open(): Promise<void> {
    const { signal } = this.abort;
    await awaitHealth(this.access, OPEN_TIMEOUT_MS, signal);
    if (signal.aborted) return;
    this.deadline.dispose();
    this.isOpen = true;
    for (const follower of this.all()) follower.onOpen();
  }

  /** Ends the stream unless a sign comes in time. A timer rather than the clock, which can be set, measures that. */
  private watchSilence(withinMs = SILENCE_LIMIT_MS): void {
    this.silence?.dispose();
    this.silence = undefined;
    if (this.lastSign === undefined || this.watching.size === 0 || this.abort.signal.aborted) return;
    const end = (): void =>
      this.end(
        new UserFacingError(sentence("The event stream was silent for {0} s.", SILENCE_LIMIT_MS / 1000)),
      );
    if (withinMs > 0) this.silence = this.clock.after(withinMs, end);
    else end();
  }

  private all(): Iterable<Follower> {
    return new Set([...this.followers.values()].flatMap((followers) => [...followers]));
  }

  private end(error?: unknown): void {
    if (this.abort.signal.aborted) return;
    this.abort.abort();
    this.deadline.dispose();
    this.silence?.dispose();
    this.onEnded();
    for (const follower of this.all()) follower.onEnd(error);
  }
}
