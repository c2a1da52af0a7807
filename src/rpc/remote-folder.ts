import type { ConnectionState } from "../engine/connection.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import { Emitter, unlessCancelled, type Event, logged } from "../engine/event.ts";
import { ServerFailure, type Clock, type Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { ConversationMessage } from "../protocol/output.ts";
import type {
  Conversation,
  DaemonRequests,
  FolderCalls,
  FolderChange,
  FolderClient,
  FolderMethod,
  FolderSettings,
  OpenFolder,
} from "./contract.ts";
import { notReached } from "./daemon-failures.ts";
import type { DaemonLink } from "./daemon-link.ts";
import { isRepeatable, methodNames, takeSignal } from "./methods.ts";
import type { AnswerOf, ParamsOf } from "./wire.ts";
import { WireClosed } from "./wire-closed.ts";

/** The delay before another try to read a conversation again. It doubles with each further one. */
const REOPEN_MS = 1_000;

/** What a folder needs from the window's connection to the daemon. */
export interface DaemonAccess {
  /** The current or next connection. Rejects if the daemon cannot be reached. */
  link(): Promise<DaemonLink>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An attempt to open a folder on a connection. */
interface Opening {
  readonly link: DaemonLink;
  readonly result: Promise<void>;
  isOpen: boolean;
}

/** A conversation that the daemon follows for this window. */
interface Followed {
  readonly id: string;
  readonly send: (message: ConversationMessage) => void;
  /** Whether the current daemon doesn't follow it yet: it knows no tasks before it is connected. */
  isLost?: boolean;
}

/** A folder of the daemon, across reconnects. */
export class RemoteFolder implements FolderClient {
  private settings: FolderSettings;
  private opening: Opening | undefined;
  /** By key. */
  private readonly conversations = new Map<number, Followed>();
  private lastKey = 0;
  private users = 1;
  private wasOpen = false;
  private isDisposed = false;
  private readonly changes: Emitter<readonly FolderChange[]>;
  readonly onDidChange: Event<readonly FolderChange[]>;
  readonly calls: FolderCalls;

  constructor(
    private folder: OpenFolder,
    private readonly daemon: DaemonAccess,
    private readonly onDispose: () => void,
  ) {
    this.settings = folder.settings;
    this.changes = new Emitter(logged(daemon.logger, "a folder"));
    this.onDidChange = this.changes.event;
    // Results are not validated: they come from the same code in another process of this user.
    const calls = Object.fromEntries(
      methodNames.map((method) => [method, (...args: readonly unknown[]) => this.call(method, args)]),
    ) as unknown as FolderCalls;
    this.calls = { ...calls, join: () => calls.join().catch((error: unknown) => this.joinFailed(error)) };
  }

  /** Lets another part of the window use the folder, too. All get a snapshot then. */
  share({ settings }: OpenFolder): this {
    this.users++;
    this.settings = settings;
    if (this.opening?.isOpen) this.attach(this.opening.link);
    return this;
  }

  /** Opens the folder on a new connection, or once more on the same one. */
  attach(link: DaemonLink): void {
    const opening: Opening = { link, result: this.open(link), isOpen: false };
    this.opening = opening;
    opening.result.catch((error: unknown) => {
      if (this.opening !== opening) return;
      // The next call tries again.
      this.opening = undefined;
      if (!(error instanceof WireClosed))
        this.setState({ kind: "failed", failure: notReached(error).failure });
    });
  }

  /** The connection was lost or does not respond. */
  lose(state: ConnectionState): void {
    this.opening = undefined;
    this.setState(state);
  }

  /** Passes on changes sent by the daemon. */
  take(changes: readonly FolderChange[]): void {
    // Otherwise they were sent before the folder was closed and reopened.
    if (!this.opening?.isOpen) return;
    this.changes.fire(changes);
    if (changes.some((change) => change.type === "connection" && change.state.kind === "connected"))
      this.followAgain(this.opening.link);
  }

  /** Passes a message of a conversation on to the page that shows it. */
  show(key: number, message: ConversationMessage): void {
    this.conversations.get(key)?.send(message);
  }

  setState(state: ConnectionState): void {
    this.changes.fire([{ type: "connection", state }]);
  }

  configure(settings: FolderSettings): void {
    this.settings = settings;
    const { directory } = this.folder;
    if (this.opening?.isOpen) this.opening.link.notify("configure", { directory, settings });
  }

  async openConversation(id: string, send: Followed["send"]): Promise<Conversation> {
    const place = { directory: this.folder.directory, key: ++this.lastKey };
    const followed: Followed = { id, send };
    const ask = <M extends "askConversation" | "openLink">(
      method: M,
      ...params: ParamsOf<DaemonRequests[M]>
    ): Promise<AnswerOf<DaemonRequests[M]>> =>
      this.ask(method, true, undefined, async (link) => {
        if (followed.isLost) await this.reopen(place.key, followed, link);
        return link.request(method, params);
      });
    try {
      await this.ask("openConversation", true, undefined, (link) => {
        // From now on it is opened again if the folder is.
        this.conversations.set(place.key, followed);
        followed.isLost = false;
        return link.request("openConversation", [{ ...place, id }]);
      });
    } catch (error) {
      this.conversations.delete(place.key);
      throw error;
    }
    if (this.isDisposed) throw closed("openConversation");
    return {
      ask: (question) =>
        void ask("askConversation", { ...place, question }).catch((error: unknown) =>
          this.daemon.logger.warn(`A conversation failed: ${messageOf(error)}`),
        ),
      open: (link) => ask("openLink", { ...place, link }),
      dispose: () => {
        this.conversations.delete(place.key);
        this.opening?.link.notify("closeConversation", place);
      },
    };
  }

  /** Called once by each user. The last one closes the folder. */
  dispose(): void {
    if (--this.users) return;
    this.isDisposed = true;
    this.conversations.clear();
    this.opening?.link.notify("close", { directory: this.folder.directory });
    this.opening = undefined;
    this.changes.dispose();
    this.onDispose();
  }

  private async open(link: DaemonLink): Promise<void> {
    const { settings } = this;
    const snapshot = await link.request("open", [{ ...this.folder, settings }]);
    // Sent only once. From now on the daemon's state takes precedence.
    this.folder = { ...this.folder, kept: undefined };
    if (this.opening?.link !== link) return;
    this.opening.isOpen = true;
    if (this.settings !== settings) this.configure(this.settings);
    const isAgain = this.wasOpen;
    this.wasOpen = true;
    this.changes.fire([{ type: "reset", snapshot }]);
    // A restarted daemon does not look for a server until asked.
    if (isAgain && snapshot.connection.kind === "disconnected") void this.calls.join();
    for (const followed of this.conversations.values()) followed.isLost = true;
    if (snapshot.connection.kind === "connected") this.followAgain(link);
  }

  private followAgain(link: DaemonLink): void {
    for (const [key, followed] of this.conversations)
      if (followed.isLost) void this.reopen(key, followed, link);
  }

  private async reopen(
    key: number,
    followed: Followed,
    link: DaemonLink,
    pauseMs = REOPEN_MS,
  ): Promise<void> {
    const place = { directory: this.folder.directory, key };
    followed.isLost = false;
    try {
      await link.request("openConversation", [{ ...place, id: followed.id }]);
      await link.request("askConversation", [{ ...place, question: { type: "newest" } }]);
    } catch (error) {
      // The next connect tries again, in any case.
      followed.isLost = true;
      if (error instanceof WireClosed) return;
      this.daemon.logger.warn(`Couldn't read a conversation again: ${messageOf(error)}`);
      this.daemon.clock.after(pauseMs, () => {
        if (followed.isLost && this.opening?.link === link && this.conversations.has(key))
          void this.reopen(key, followed, link, 2 * pauseMs);
      });
    }
  }

  private call(method: FolderMethod, given: readonly unknown[]): Promise<unknown> {
    const { args, signal, cancelled } = takeSignal(method, given);
    const { directory } = this.folder;
    const outcome = this.ask(method, isRepeatable(method, args), signal, (link) =>
      link.request("call", [{ directory, method, args }], signal),
    );
    return unlessCancelled(outcome, signal, () => new Refusal("cancelled-by-caller", cancelled));
  }

  private ask<T>(
    what: string,
    repeatable: boolean,
    signal: AbortSignal | undefined,
    ask: (link: DaemonLink) => Promise<T>,
  ): Promise<T> {
    return answered(
      what,
      repeatable,
      () => this.opened(signal),
      ask,
      (lost) => {
        if (signal?.aborted) throw lost;
        if (this.isDisposed) throw closed(what);
      },
    );
  }

  /** Resolves once the folder is open on the current or next connection. */
  private async opened(signal?: AbortSignal): Promise<DaemonLink> {
    const link = await this.daemon.link();
    if (this.isDisposed) throw new WireClosed();
    if (this.opening?.link !== link) this.attach(link);
    await this.opening?.result;
    // The caller has already been notified of the cancellation.
    if (signal?.aborted) throw new WireClosed();
    return link;
  }

  /** Only logged, as the connection state shows the reason. */
  private joinFailed(error: unknown): void {
    this.daemon.logger.debug(`Couldn't join the folder: ${messageOf(error)}`);
  }
}

/**
 * Makes a request on the current or next connection. Repeats it if the daemon dies and repeating is safe.
 * @param onLost throws if it isn't to be repeated then
 */
export async function answered<T>(
  what: string,
  repeatable: boolean,
  reach: () => Promise<DaemonLink>,
  ask: (link: DaemonLink) => Promise<T>,
  onLost?: (lost: WireClosed) => void,
): Promise<T> {
  for (;;) {
    let isSent = false;
    try {
      const link = await reach();
      isSent = link.isOpen;
      return await ask(link);
    } catch (error) {
      if (!(error instanceof WireClosed)) throw error;
      onLost?.(error);
      if (isSent && !repeatable) throw mayBeDone(what);
    }
  }
}

function mayBeDone(call: string): ServerFailure {
  return new ServerFailure(
    call,
    "unreachable",
    sentence("The background process stopped before it responded. Check the task before you try again."),
  );
}

/** The failure of a call after its folder was closed. */
export function closed(call: string): ServerFailure {
  return new ServerFailure(call, "unreachable", sentence("This folder was closed."));
}
