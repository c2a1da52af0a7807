import { homedir } from "node:os";
import * as vscode from "vscode";
import { folderOpener } from "./folder.ts";
import { systemClock } from "./rpc/clock.ts";
import type { Environment } from "./rpc/contract.ts";
import { DaemonClient } from "./rpc/daemon-client.ts";
import { defaultStateFolder } from "./state/state-folder.ts";
import type { AgentTools } from "./ui/agent-tools.ts";
import type { CommandContext } from "./ui/commands/command.ts";
import { LaunchMemory } from "./ui/commands/launch-memory.ts";
import type { Review } from "./ui/changes/review.ts";
import { ContextKeys } from "./ui/context-keys.ts";
import { DaemonTrouble } from "./ui/daemon-trouble.ts";
import { offerProblemActions } from "./ui/editor/problem-actions.ts";
import { FirstSteps } from "./ui/first-steps.ts";
import type { Folder, FolderOpener } from "./ui/folders/folders.ts";
import { followSavedFiles } from "./ui/folders/saved-files.ts";
import { Notifications, RequestNotifications } from "./ui/notifications.ts";
import { PromptEditors } from "./ui/prompt-editors.ts";
import { offerOwnDatabase, warnOfUntestedVersions } from "./ui/server-warnings.ts";
import { Settings } from "./ui/settings.ts";
import { StatusBar } from "./ui/status-bar.ts";
import { ancestors } from "./ui/tree/family.ts";
import { ListOptions } from "./ui/tree/list-options.ts";
import { TASK_VIEW, TaskView } from "./ui/tree/task-view.ts";
import { Unread } from "./ui/tree/unread.ts";
import type { News } from "./ui/while-away.ts";
import { loadLater } from "./ui/load-later.ts";

/** What exists of the window since the extension was activated. */
type Start = Pick<
  CommandContext,
  "folders" | "known" | "tasks" | "panels" | "overview" | "openText" | "logger" | "showLog"
> & {
  readonly context: vscode.ExtensionContext;
  /** The extension's version. */
  readonly version: string;
  /** Disposes of a part when the extension ends. */
  readonly own: <T extends { dispose(): unknown }>(part: T) => T;
  readonly agentTools: AgentTools;
  /** Fires when the text of a changed file, as it is shown for review, has changed. */
  readonly textChanges: vscode.EventEmitter<vscode.Uri>;
};

/**
 * Creates the rest of the window and opens its folders.
 * @returns `ready` resolves once the folders are open; rejects if that fails
 */
export function openWindow(start: Start): { commandContext: CommandContext; ready: Promise<void> } {
  const { context, version, own, agentTools, textChanges, ...shared } = start;
  const { folders, known, tasks, panels, logger } = shared;
  const { execPath, platform } = process;
  const env = process.env as Environment;
  const stateFolder = defaultStateFolder({ platform, env, home: homedir() });
  const script = vscode.Uri.joinPath(context.extensionUri, "dist", "daemon.cjs").fsPath;
  const daemon = own(
    new DaemonClient({ execPath, script, env, stateFolder, version, clock: systemClock, logger }),
  );
  const trouble = own(new DaemonTrouble(daemon, logger));

  const settings = new Settings();
  own(agentTools.follow(settings));
  const keys = new ContextKeys();
  const list = own(new ListOptions(context.workspaceState));
  const unread = own(new Unread(known, folders, context.workspaceState, panels));
  const view = own(new TaskView({ known, folders, options: list, unread, keys, daemon: trouble }));
  own(panels.onDidActivate((id) => view.follow(id)));
  const isShown = (id: string): boolean => panels.isShown(id);
  const showTasks = (): void => void vscode.commands.executeCommand(`${TASK_VIEW}.focus`);
  own(
    new Notifications({
      folders,
      known,
      tasks,
      clock: systemClock,
      logger,
      notifyUser: () => settings.notifyUser(),
      showOutput: (id) => panels.show(id),
      showTasks,
      isShown,
      isListShown: (task) => view.visible && folders.sessionIDs.includes(ancestors(known, task).at(-1) ?? ""),
    }),
  );
  const firstSteps = own(new FirstSteps(context.globalState, keys, known, folders, isShown));
  own(new StatusBar(known, folders));

  const openReview = async (): Promise<Review> => {
    const { Review } = await loadLater();
    return own(new Review({ known, folders, state: context.workspaceState, keys, textChanges, logger }));
  };
  let opening: Promise<Review> | undefined;

  const commandContext: CommandContext = {
    ...shared,
    extensionUri: context.extensionUri,
    daemon,
    settings,
    list,
    unread,
    firstSteps,
    promptEditors: own(new PromptEditors(context.workspaceState, keys)),
    memory: new LaunchMemory(context.workspaceState),
    showLaunching: (what, folder) => view.tree.launching.show(what, folder),
    reveal: (taskID, options) => void view.reveal(taskID, options),
    frontID: () => view.frontID(panels.activeID),
    clickedID: () => view.clickedID(),
    review: () => (opening ??= openReview()),
  };
  own(new RequestNotifications(commandContext, isShown));
  own(offerProblemActions());

  const useEdited = (editor: vscode.TextEditor | undefined): void => {
    keys.set("textEditor", editor !== undefined);
    folders.use(editor && folders.at(editor.document.uri));
  };
  own(vscode.window.onDidChangeActiveTextEditor(useEdited));
  const connect = (folder: Folder | undefined): void => {
    if (folder?.connector.state.kind === "disconnected")
      folder.connector
        .ensureConnected()
        .catch((error: unknown) => logger.warn(`Couldn't connect: ${String(error)}`));
  };
  // Each server uses resources, so showing the view only connects the current folder.
  const connectWhenSeen = (): void => {
    if (view.visible) connect(folders.current);
  };
  own(view.onDidChangeVisibility(connectWhenSeen));
  own(view.onDidOpenFolder(connect));
  own(vscode.workspace.onDidGrantWorkspaceTrust(() => void folders.adopt().then(connectWhenSeen)));

  const warnOfWork = (folder: Folder, openFolder: FolderOpener): void => {
    // Read immediately, because the folder's data is about to be disposed.
    const running = folder.known.active();
    const { state } = folder.connector;
    const isOwnServer = state.kind !== "connected" || state.own;
    if (running.length > 0)
      void loadLater().then(({ showClosed }) => showClosed(folder, running, isOwnServer, openFolder, logger));
  };
  const showNews = (folderName: string, news: News): void => {
    const about = folders.all.length > 1 ? folderName : undefined;
    void loadLater().then(({ showNews }) => showNews({ folderName: about, showTasks }, news));
  };

  own(warnOfUntestedVersions(folders, context.globalState));
  own(offerOwnDatabase(folders, context.globalState));
  own(followSavedFiles(folders));
  const openFolder = folderOpener({ context, view, daemon, showNews, logger });
  own(folders.onWillClose((folder) => warnOfWork(folder, openFolder)));
  const openFolders = async (): Promise<void> => {
    const opening = folders.open(openFolder);
    useEdited(vscode.window.activeTextEditor);
    await opening;
    connectWhenSeen();
  };
  return { commandContext, ready: openFolders() };
}
