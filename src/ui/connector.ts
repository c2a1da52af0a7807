import * as vscode from "vscode";
import {
  ConnectionError,
  type ConnectionFailure,
  type ConnectionState,
  type ServerConnection,
} from "../engine/connection.ts";
import type { ActiveSession } from "../engine/active-session.ts";
import { Emitter, type Event } from "../engine/event.ts";
import type { TaskEngine } from "../engine/engine.ts";
import { messageOf, Refusal, textOf } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { Limit } from "./folders/limit.ts";
import type { PasswordStore } from "./passwords.ts";
import { withoutLinks } from "./plain-text.ts";
import type { Settings } from "./settings.ts";
import { translate } from "./translate.ts";

/** The other windows on the same server: one of all writes. */
export interface Windows {
  join(server: string): Promise<void>;
  leave(): Promise<void>;
}

/** The view that shows progress, where the person sees it. */
export interface WatchedView {
  readonly id: string;
  readonly visible: boolean;
  readonly onDidChangeVisibility: vscode.Event<boolean>;
}

export interface ConnectorOptions {
  readonly connection: ServerConnection;
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  readonly windows: Windows;
  readonly passwords: PasswordStore;
  readonly settings: Settings;
  readonly view: WatchedView;
  /** The folder's name. */
  readonly name: string;
  /** Shared by the folders of the window: each start takes much of the machine. */
  readonly starts: Limit;
  readonly logger: Logger;
}

/** Joins connection, engine and person: who may connect, what happens after it, what is asked when it fails. */
export class Connector implements vscode.Disposable {
  private synced: Promise<void> = Promise.resolve();
  private upToDate = false;
  private syncFailure: ConnectionFailure | undefined;
  private readonly changes: Emitter<void>;
  /** The state changed, or what is known of the tasks became current. */
  readonly onDidChange: Event<void>;
  /** Those who wait for a connection, each with its way to give up. */
  private readonly waits = new Set<AbortController>();
  /** How many of them wait for servers of other folders. */
  private queued = 0;
  private readonly subscriptions: readonly { dispose(): void }[];

  constructor(private readonly options: ConnectorOptions) {
    const { connection, engine, windows, logger } = options;
    this.changes = new Emitter((error) => logger.error("A listener to the connection failed.", error));
    this.onDidChange = this.changes.event;
    this.subscriptions = [
      connection.onDidConnect(() => {
        this.sync().catch((error: unknown) =>
          logger.error("The tasks could not be read from the server.", error),
        );
      }),
      connection.onDidChangeState(({ kind }) => {
        if (kind !== "connected") {
          this.upToDate = false;
          engine.disconnect();
        }
        if (kind === "disconnected" || kind === "failed")
          void windows.leave().catch((error: unknown) => logger.warn(`Leaving failed: ${messageOf(error)}`));
        this.changes.fire();
      }),
    ];
  }

  /** As the person sees it: connected only once the tasks were read. */
  get state(): ConnectionState {
    const { state } = this.options.connection;
    if (this.queued > 0 && state.kind === "disconnected")
      return { kind: "connecting", detail: sentence("Waiting for the servers of other folders…") };
    if (state.kind !== "connected" || this.upToDate) return state;
    return this.syncFailure
      ? { kind: "failed", failure: this.syncFailure }
      : { kind: "connecting", detail: "" };
  }

  /** Joins a server that runs already, if this folder has one. Starts and asks nothing; never rejects. */
  async adopt(): Promise<void> {
    if (!vscode.workspace.isTrusted) return;
    try {
      if (await this.options.connection.adopt()) await this.synced;
    } catch (error) {
      this.options.logger.warn(`No running server was joined: ${String(error)}`);
    }
  }

  /** Resolves once connected and up to date; the view shows progress meanwhile. */
  async ensureConnected(): Promise<void> {
    if (!vscode.workspace.isTrusted)
      throw new Refusal("unavailable", sentence("This folder is not trusted; trust it to run agents on it."));
    if (this.options.connection.state.kind !== "connected") await this.connectVisibly();
    if (this.syncFailure) await this.sync();
    else await this.synced;
  }

  /** Connects because the person said so, and asks for the password where that is what is missing. */
  async connectAsking(): Promise<ConnectionState> {
    try {
      await this.ensureConnected();
    } catch (error) {
      if (!(error instanceof ConnectionError) || error.failure.code !== "wrong-password") throw error;
      if (!(await this.askPassword())) return this.state;
      await this.ensureConnected();
    }
    return this.state;
  }

  /** The settings name another server: leaves the present one, and joins that if the person looks on. */
  async reconnect(isWatched: boolean): Promise<void> {
    const { connection } = this.options;
    if (connection.state.kind === "disconnected") return;
    await connection.disconnect();
    if (isWatched) await this.ensureConnected();
  }

  /** Reads everything anew from the server. */
  async refresh(): Promise<void> {
    if (this.syncFailure) return this.ensureConnected();
    await this.ensureConnected();
    await this.sync();
  }

  /** Gives up connecting, for all who wait for it. A server that other windows use stays. */
  async cancel(): Promise<void> {
    this.giveUp();
    // Nobody need have waited: a lost watchdog is replaced by itself.
    if (this.options.connection.state.kind === "connecting") await this.options.connection.disconnect();
  }

  /** Ends a server that this product started, and leaves it; one that is only starting, too. */
  async stopServer(): Promise<void> {
    this.giveUp();
    await this.options.connection.stopServer();
  }

  dispose(): void {
    this.giveUp();
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changes.dispose();
  }

  /**
   * Shows what is going on: in the view, which offers to cancel, and to whom does not see that, beside everything else.
   */
  private async connectVisibly(): Promise<void> {
    const { view, name } = this.options;
    const { Notification } = vscode.ProgressLocation;
    const location = view.visible ? { viewId: view.id } : Notification;
    const isOneOfMany = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
    const title = isOneOfMany
      ? withoutLinks(vscode.l10n.t("Connecting to OpenCode for {0}", name))
      : vscode.l10n.t("Connecting to OpenCode");
    await vscode.window.withProgress({ location, title, cancellable: true }, async (progress, token) => {
      const abort = new AbortController();
      this.waits.add(abort);
      const subscriptions = [
        token.onCancellationRequested(() => abort.abort()),
        this.onDidChange(() => {
          const { state } = this;
          if (state.kind === "connecting")
            progress.report({ message: withoutLinks(translate(state.detail)) });
        }),
      ];
      try {
        await this.connectInTurn(abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) throw error;
        throw new Refusal("cancelled-by-caller", sentence("Connecting was cancelled."));
      } finally {
        this.waits.delete(abort);
        for (const subscription of subscriptions) subscription.dispose();
      }
    });
  }

  private async connectInTurn(signal: AbortSignal): Promise<void> {
    const { connection } = this.options;
    // Whoever comes while a start is under way takes part in it.
    if (connection.state.kind === "connecting") return connection.connect(signal);
    const leave = await this.turn(signal);
    await connection.connect(signal).finally(leave);
  }

  private async turn(signal: AbortSignal): Promise<() => void> {
    const { starts } = this.options;
    if (!starts.isReached) return starts.enter(signal);
    this.countQueued(1);
    return starts.enter(signal).finally(() => this.countQueued(-1));
  }

  private countQueued(change: number): void {
    this.queued += change;
    this.changes.fire();
  }

  private giveUp(): void {
    for (const wait of this.waits) wait.abort();
  }

  private sync(): Promise<void> {
    this.syncFailure = undefined;
    this.synced = this.readAll();
    return this.synced;
  }

  private async readAll(): Promise<void> {
    try {
      const { connection, windows, engine, session } = this.options;
      const { state } = connection;
      if (state.kind === "connected") await windows.join(state.own ? "own" : state.url);
      await engine.connect();
      await session.refresh();
      // The connection may be gone again by now.
      this.upToDate = connection.state.kind === "connected";
    } catch (error) {
      this.syncFailure = {
        code: "gave-up",
        message: sentence("The tasks could not be read from the server: {0}", textOf(error)),
        remedy: sentence("Refresh to try again."),
      };
      throw error;
    } finally {
      this.changes.fire();
    }
  }

  private async askPassword(): Promise<boolean> {
    const { passwords, settings } = this.options;
    const { url } = settings.server();
    if (url === undefined) return false;
    const password = await vscode.window.showInputBox({
      title: vscode.l10n.t("Password of the OpenCode Server"),
      prompt: vscode.l10n.t("What the server was given as OPENCODE_SERVER_PASSWORD."),
      password: true,
      ignoreFocusOut: true,
    });
    if (password === undefined || password === "") return false;
    await passwords.set(url, password);
    return true;
  }
}
