import { DisposableStore } from "../engine/disposable-store.ts";
import * as vscode from "vscode";
import { ConnectionError, type ConnectionState } from "../engine/connection.ts";
import { Emitter, type Event, logged } from "../engine/event.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { FolderMirror } from "./folders/folder-mirror.ts";
import type { PasswordStore, Settings } from "./settings.ts";
import { withoutLinks } from "./plain-text.ts";
import { translate } from "./messages.ts";

/** The view that shows progress while it is visible. */
export interface WatchedView {
  readonly id: string;
  readonly visible: boolean;
  readonly onDidChangeVisibility: vscode.Event<boolean>;
}

export interface ConnectorOptions {
  readonly mirror: FolderMirror;
  readonly passwords: PasswordStore;
  readonly settings: Settings;
  readonly daemon: { isStarted(): Promise<boolean> };
  /** Sends the current settings to the daemon. */
  readonly configure: () => Promise<void>;
  readonly view: WatchedView;
  /** The folder's name. */
  readonly name: string;
  readonly logger: Logger;
}

/** The connection of a folder to its server as users experience it: what is shown to them and what they are asked. */
export class Connector implements vscode.Disposable {
  private readonly changes: Emitter<void>;
  readonly onDidChange: Event<void>;
  /** The controllers of pending connection attempts. */
  private readonly waits = new Set<AbortController>();
  private readonly subscription: { dispose(): void };

  constructor(private readonly options: ConnectorOptions) {
    const { mirror, logger } = options;
    this.changes = new Emitter(logged(logger, "the connection"));
    this.onDidChange = this.changes.event;
    this.subscription = mirror.known.onDidChangeConnection(() => this.changes.fire());
  }

  /** `connected` only after the tasks have been read. */
  get state(): ConnectionState {
    return this.options.mirror.known.connection;
  }

  /** Connects to the folder's server if one is already running. Starts nothing and asks nothing; never rejects. */
  async adopt(): Promise<void> {
    const { daemon, mirror, settings } = this.options;
    if (!vscode.workspace.isTrusted) return;
    try {
      // Most windows need no daemon, and if it isn't running, neither is a server that it started.
      if (settings.server().url === undefined && !(await daemon.isStarted())) return;
      await (await mirror.open()).join();
    } catch (error) {
      this.options.logger.warn(`Couldn't join a running server: ${messageOf(error)}`);
    }
  }

  /** Resolves when the folder is connected and up to date; shows progress until then. */
  async ensureConnected(): Promise<void> {
    requireTrust();
    if (this.state.kind !== "connected") await this.connectVisibly();
  }

  /** Connects at the user's request, and asks for the password if that is missing. */
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

  /** Reads everything from the server again. */
  async refresh(): Promise<void> {
    await this.options.mirror.calls.refresh();
  }

  /** Cancels connecting for all callers. A server that other windows use keeps running. */
  async cancel(): Promise<void> {
    this.giveUp();
    if (this.state.kind === "connecting") await this.options.mirror.calls.cancelConnecting();
  }

  /** Stops a server that the extension started, even if it is still starting, and disconnects from it. */
  async stopServer(): Promise<void> {
    this.giveUp();
    await this.options.mirror.calls.stopServer();
  }

  dispose(): void {
    this.giveUp();
    this.subscription.dispose();
    this.changes.dispose();
  }

  /** Shows progress with a cancel button: in the view, or in a notification if the view isn't visible. */
  private async connectVisibly(): Promise<void> {
    const { mirror, view, name } = this.options;
    const { Notification } = vscode.ProgressLocation;
    const location = view.visible ? { viewId: view.id } : Notification;
    const isOneOfMany = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
    const title = isOneOfMany
      ? withoutLinks(vscode.l10n.t("Connecting to OpenCode for {0}", name))
      : vscode.l10n.t("Connecting to OpenCode");
    await vscode.window.withProgress({ location, title, cancellable: true }, async (progress, token) => {
      const abort = new AbortController();
      this.waits.add(abort);
      const subscriptions = new DisposableStore(
        token.onCancellationRequested(() => abort.abort()),
        this.onDidChange(() => {
          const { state } = this;
          if (state.kind === "connecting")
            progress.report({ message: withoutLinks(translate(state.detail)) });
        }),
      );
      try {
        const calls = await mirror.open();
        await calls.connect(abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) throw error;
        throw new Refusal("cancelled-by-caller", sentence("Connecting was cancelled."));
      } finally {
        this.waits.delete(abort);
        subscriptions.dispose();
      }
    });
  }

  private giveUp(): void {
    for (const wait of this.waits) wait.abort();
  }

  private async askPassword(): Promise<boolean> {
    const { passwords, settings, configure } = this.options;
    const { url } = settings.server();
    if (url === undefined) return false;
    const password = await vscode.window.showInputBox({
      title: vscode.l10n.t("Password of the OpenCode Server"),
      prompt: vscode.l10n.t("The value of the server's OPENCODE_SERVER_PASSWORD"),
      password: true,
      ignoreFocusOut: true,
    });
    if (password === undefined || password === "") return false;
    await passwords.set(url, password);
    await configure();
    return true;
  }
}

/** Throws a {@link Refusal} in a workspace that isn't trusted: nothing may be started there. */
export function requireTrust(): void {
  if (!vscode.workspace.isTrusted)
    throw new Refusal("unavailable", sentence("This folder isn't trusted. Trust it to run agents in it."));
}
