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
import type { PasswordStore } from "./passwords.ts";
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

/** Joins connection, engine and person: who may connect, what happens after it, what is asked when it fails. */
export class Connector implements vscode.Disposable {
  private synced: Promise<void> = Promise.resolve();
  private upToDate = false;
  private syncFailure: ConnectionFailure | undefined;
  private readonly changes: Emitter<void>;
  /** The state changed, or what is known of the tasks became current. */
  readonly onDidChange: Event<void>;
  private readonly subscriptions: readonly { dispose(): void }[];

  constructor(
    private readonly connection: ServerConnection,
    private readonly engine: TaskEngine,
    private readonly session: ActiveSession,
    private readonly windows: Windows,
    private readonly passwords: PasswordStore,
    private readonly settings: Settings,
    private readonly view: WatchedView,
    private readonly logger: Logger,
  ) {
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
    const { state } = this.connection;
    if (state.kind !== "connected" || this.upToDate) return state;
    return this.syncFailure
      ? { kind: "failed", failure: this.syncFailure }
      : { kind: "connecting", detail: "" };
  }

  /** Joins a server that runs already, if this folder has one. Starts and asks nothing; never rejects. */
  async adopt(): Promise<void> {
    if (!vscode.workspace.isTrusted) return;
    try {
      if (await this.connection.adopt()) await this.synced;
    } catch (error) {
      this.logger.warn(`No running server was joined: ${String(error)}`);
    }
  }

  /** Resolves once connected and up to date; the view shows progress meanwhile. */
  async ensureConnected(): Promise<void> {
    if (!vscode.workspace.isTrusted)
      throw new Refusal(
        "unavailable",
        vscode.l10n.t("This folder is not trusted; trust it to run agents on it."),
      );
    if (this.connection.state.kind !== "connected") await this.connectVisibly();
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
    if (this.connection.state.kind === "disconnected") return;
    await this.connection.disconnect();
    if (isWatched) await this.ensureConnected();
  }

  /** Reads everything anew from the server. */
  async refresh(): Promise<void> {
    if (this.syncFailure) return this.ensureConnected();
    await this.ensureConnected();
    await this.sync();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changes.dispose();
  }

  /** Shows in the view what is going on; to whom does not see that, beside everything else, with a way to cancel. */
  private async connectVisibly(): Promise<void> {
    const { Notification } = vscode.ProgressLocation;
    const location = this.view.visible ? { viewId: this.view.id } : Notification;
    const title = vscode.l10n.t("Connecting to OpenCode");
    await vscode.window.withProgress({ location, title, cancellable: true }, async (progress, token) => {
      const abort = new AbortController();
      const subscriptions = [
        token.onCancellationRequested(() => abort.abort()),
        this.connection.onDidChangeState((state) => {
          if (state.kind === "connecting") progress.report({ message: translate(state.detail) });
        }),
      ];
      try {
        await this.connection.connect(abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) throw error;
        throw new Refusal("cancelled-by-caller", sentence("Connecting was cancelled."));
      } finally {
        for (const subscription of subscriptions) subscription.dispose();
      }
    });
  }

  private sync(): Promise<void> {
    this.syncFailure = undefined;
    this.synced = this.readAll();
    return this.synced;
  }

  private async readAll(): Promise<void> {
    try {
      const { state } = this.connection;
      if (state.kind === "connected") await this.windows.join(state.own ? "own" : state.url);
      await this.engine.connect();
      await this.session.refresh();
      // The connection may be gone again by now.
      this.upToDate = this.connection.state.kind === "connected";
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
    const { url } = this.settings.server();
    if (url === undefined) return false;
    const password = await vscode.window.showInputBox({
      title: vscode.l10n.t("Password of the OpenCode Server"),
      prompt: vscode.l10n.t("What the server was given as OPENCODE_SERVER_PASSWORD."),
      password: true,
      ignoreFocusOut: true,
    });
    if (password === undefined || password === "") return false;
    await this.passwords.set(url, password);
    return true;
  }
}
