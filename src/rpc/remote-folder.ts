import type { ConnectionState } from "../engine/connection.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import {
  Emitter,
  unlessCancelled,
  type CancelSignal,
  type Event,
  type OnListenerError,
} from "../engine/event.ts";
import { ServerFailure, type Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { Message } from "../engine/server-model.ts";
import { TranscriptMessages } from "../engine/transcript-messages.ts";
import type { Transcript, TranscriptChange } from "../engine/transcript.ts";
import type {
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
import { WireClosed } from "./wire-closed.ts";

/** What a folder needs from the window's connection to the daemon. */
export interface DaemonAccess {
  /** The current or next connection. Rejects if the daemon cannot be reached. */
  link(): Promise<DaemonLink>;
  /** The open transcripts by the keys that the daemon assigned. */
  readonly transcripts: Map<number, RemoteTranscript>;
  readonly logger: Logger;
}

/** An attempt to open a folder on a connection. */
interface Opening {
  readonly link: DaemonLink;
  readonly result: Promise<void>;
  isOpen: boolean;
}

/** A folder of the daemon, across reconnects. */
export class RemoteFolder implements FolderClient {
  private settings: FolderSettings;
  private opening: Opening | undefined;
  /** The open transcripts, each with the ID that it was opened for. */
  private readonly transcripts = new Map<RemoteTranscript, string>();
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
    this.changes = new Emitter((error) => this.listenerFailed(error));
    this.onDidChange = this.changes.event;
    // Results are not validated: they come from the same code in another process of this user.
    const calls = Object.fromEntries(
      methodNames.map((method) => [method, (...args: readonly unknown[]) => this.call(method, args)]),
    ) as unknown as FolderCalls;
    this.calls = { ...calls, join: () => calls.join().catch((error: unknown) => this.joinFailed(error)) };
  }

  /** Opens the folder on a new connection. */
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
    if (this.opening?.isOpen) this.changes.fire(changes);
  }

  setState(state: ConnectionState): void {
    this.changes.fire([{ type: "connection", state }]);
  }

  configure(settings: FolderSettings): void {
    this.settings = settings;
    const { directory } = this.folder;
    if (this.opening?.isOpen) this.opening.link.notify("configure", { directory, settings });
  }

  async openTranscript(id: string): Promise<Transcript> {
    const { directory } = this.folder;
    return this.ask("openTranscript", true, undefined, async (link) => {
      const { key, sessionID, messages } = await link.request("openTranscript", [{ directory, id }]);
      if (this.isDisposed) throw new WireClosed();
      const transcript = new RemoteTranscript(
        sessionID,
        messages,
        (error) => this.listenerFailed(error),
        () => this.closeTranscript(transcript),
      );
      this.daemon.transcripts.set(key, transcript);
      this.transcripts.set(transcript, id);
      return transcript;
    });
  }

  dispose(): void {
    if (this.isDisposed) return;
    this.isDisposed = true;
    for (const transcript of [...this.transcripts.keys()]) transcript.dispose();
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
    for (const [transcript, id] of this.transcripts) void this.reopen(transcript, id, link);
  }

  private async reopen(transcript: RemoteTranscript, id: string, link: DaemonLink): Promise<void> {
    const { directory } = this.folder;
    try {
      const { key, messages } = await link.request("openTranscript", [{ directory, id }]);
      if (!this.transcripts.has(transcript)) return link.notify("closeTranscript", { key });
      this.daemon.transcripts.set(key, transcript);
      transcript.apply({ type: "reset", messages });
    } catch (error) {
      if (error instanceof WireClosed) return;
      this.daemon.logger.warn(`Couldn't read a conversation again: ${messageOf(error)}`);
    }
  }

  private closeTranscript(transcript: RemoteTranscript): void {
    this.transcripts.delete(transcript);
    for (const [key, one] of this.daemon.transcripts)
      if (one === transcript) {
        this.daemon.transcripts.delete(key);
        this.opening?.link.notify("closeTranscript", { key });
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

  /** Makes a request on the current or next connection. Repeats it if the daemon dies and repeating is safe. */
  private async ask<T>(
    what: string,
    repeatable: boolean,
    signal: CancelSignal | undefined,
    ask: (link: DaemonLink) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      let isSent = false;
      try {
        const link = await this.opened();
        // The caller has already been notified of the cancellation.
        if (signal?.aborted) throw new WireClosed();
        isSent = link.isOpen;
        return await ask(link);
      } catch (error) {
        if (!(error instanceof WireClosed) || signal?.aborted) throw error;
        if (this.isDisposed) throw closed(what);
        if (isSent && !repeatable) throw mayBeDone(what);
      }
    }
  }

  /** Resolves once the folder is open on the current or next connection. */
  private async opened(): Promise<DaemonLink> {
    const link = await this.daemon.link();
    if (this.isDisposed) throw new WireClosed();
    if (this.opening?.link !== link) this.attach(link);
    await this.opening?.result;
    return link;
  }

  /** Only logged, as the connection state shows the reason. */
  private joinFailed(error: unknown): void {
    this.daemon.logger.debug(`Couldn't join the folder: ${messageOf(error)}`);
  }

  private listenerFailed(error: unknown): void {
    this.daemon.logger.error("A listener to a folder failed.", error);
  }
}

/** A conversation that the daemon follows for this window. */
export class RemoteTranscript implements Transcript {
  private readonly content = new TranscriptMessages();
  private readonly changes: Emitter<TranscriptChange>;
  readonly onDidChange;

  constructor(
    readonly sessionID: string,
    messages: readonly Message[],
    onListenerError: OnListenerError,
    private readonly onDispose: () => void,
  ) {
    this.changes = new Emitter(onListenerError);
    this.onDidChange = this.changes.event;
    this.content.apply({ type: "reset", messages });
  }

  get messages(): readonly Message[] {
    return this.content.all();
  }

  apply(change: TranscriptChange): void {
    if (this.content.apply(change)) this.changes.fire(change);
  }

  dispose(): void {
    this.changes.dispose();
    this.onDispose();
  }
}

function mayBeDone(call: string): ServerFailure {
  return new ServerFailure(
    call,
    "unreachable",
    sentence("The background process stopped before it responded. Check the task before you try again."),
  );
}

function closed(call: string): ServerFailure {
  return new ServerFailure(call, "unreachable", sentence("This folder was closed."));
}
