import { DisposableStore } from "./engine/disposable-store.ts";
import { realpath } from "node:fs/promises";
import type * as vscode from "vscode";
import { messageOf, Refusal } from "./engine/errors.ts";
import type { Logger } from "./engine/ports.ts";
import { sentence } from "./engine/sentence.ts";
import type { Environment, FolderClient } from "./rpc/contract.ts";
import type { DaemonClient } from "./rpc/daemon-client.ts";
import { systemClock } from "./rpc/clock.ts";
import { Connector, requireTrust, type WatchedView } from "./ui/connector.ts";
import { folderSettings, type NotifyUser, PasswordStore, Settings } from "./ui/settings.ts";
import { FolderState, WindowSession } from "./ui/folders/window-session.ts";
import type { FolderOpener } from "./ui/folders/folders.ts";
import { FolderMirror } from "./ui/folders/folder-mirror.ts";
import { WhileAway, type News } from "./ui/while-away.ts";

/** What the window provides to its folders. */
export interface FolderHost {
  readonly context: vscode.ExtensionContext;
  readonly view: WatchedView;
  readonly daemon: Pick<DaemonClient, "open" | "isStarted">;
  /** Shows what happened in a folder while no window had it open. */
  readonly showNews: (folderName: string, news: News) => void;
  readonly logger: Logger;
}

/** Returns a function that creates the window's parts of one folder and connects them to the daemon. */
export function folderOpener(host: FolderHost): FolderOpener {
  const { context, view, daemon, logger } = host;
  // It has no undefined values; its type says so for its setter's sake.
  const env = process.env as Environment;
  const passwords = new PasswordStore(context.secrets);

  return ({ uri, name, index }) => {
    const parts = new DisposableStore();
    const own = <T extends { dispose(): unknown }>(part: T): T => parts.add(part);

    const settings = new Settings(uri);
    const state = new FolderState(context.workspaceState, uri, index === 0);
    const settingsNow = () => folderSettings(settings, state, passwords, () => view.visible);
    const openClient = async (): Promise<FolderClient> => {
      const directory = await realpath(uri.fsPath).catch(() => {
        throw new Refusal(
          "unavailable",
          sentence(
            "The folder \"{0}\" doesn't exist or can't be read. Restore it, or remove it from the workspace.",
            name,
          ),
        );
      });
      const kept = state.keptTasks;
      const client = daemon.open({ directory, settings: await settingsNow(), env, kept });
      if (kept)
        client.onDidChange((changes) => {
          for (const change of changes)
            if (change.type === "reset") state.leaveTasks(change.snapshot.tombstones);
        });
      return client;
    };
    const mirror = own(new FolderMirror(openClient, systemClock, logger));
    const { known } = mirror;
    const configure = async (): Promise<void> => mirror.configure(await settingsNow());
    const ensureSession = async (): Promise<string> => mirror.calls.ensureSession();
    const session = own(new WindowSession(known, ensureSession, logger, state));
    const connector = own(
      new Connector({ mirror, daemon, passwords, settings, configure, view, name, logger }),
    );
    const notifyUser = (): NotifyUser => settings.notifyUser();
    const show = (news: News): void => host.showNews(name, news);
    const whileAway = own(new WhileAway({ known, state, clock: systemClock, notifyUser, show }));
    const configureSoon = (): void => {
      configure().catch((error: unknown) =>
        logger.warn(`Couldn't send the settings to the background process: ${messageOf(error)}`),
      );
    };
    own(view.onDidChangeVisibility(configureSoon));
    own(settings.onDidChange(configureSoon));

    return {
      uri,
      name,
      settings,
      connector,
      known,
      get calls() {
        return mirror.calls;
      },
      open: async () => {
        requireTrust();
        return mirror.open();
      },
      openConversation: (id, send) => mirror.openConversation(id, send),
      allowSetup: async (command) => {
        // The folder takes the settings of a window that changes them, even if the user has allowed the command there before.
        if (state.allowedSetup === command) {
          state.allowedSetup = undefined;
          await configure();
        }
        state.allowedSetup = command;
        await configure();
      },
      session,
      whileAway,
      // In reverse order, so that `whileAway` stores what was seen before the other parts end.
      dispose: () => parts.dispose(),
    };
  };
}
