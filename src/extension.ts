import { DisposableStore } from "./engine/disposable-store.ts";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { messageOf } from "./engine/errors.ts";
import type { Logger } from "./engine/ports.ts";
import type { TaskChange } from "./engine/registry.ts";
import { defaultStateFolder } from "./state/state-folder.ts";
import type { Environment } from "./rpc/contract.ts";
import type { DaemonClient } from "./rpc/daemon-client.ts";
import { AgentTools } from "./ui/agent-tools.ts";
import { createApi, type AsyncAgentsApi } from "./ui/api.ts";
import { CHANGE_SCHEME } from "./ui/changes/change-side.ts";
import type { Review } from "./ui/changes/review.ts";
import { systemClock } from "./rpc/clock.ts";
import { INTERNAL_COMMANDS, registerCommands, type CommandContext } from "./ui/commands/command.ts";
import { LaunchMemory } from "./ui/commands/launch-memory.ts";
import { ContextKeys } from "./ui/context-keys.ts";
import { DaemonTrouble } from "./ui/daemon-trouble.ts";
import { FirstSteps } from "./ui/first-steps.ts";
import { AllTasks, routedCommands } from "./ui/folders/all-tasks.ts";
import { type Folder, Folders, type FolderOpener } from "./ui/folders/folders.ts";
import { offerProblemActions } from "./ui/editor/problem-actions.ts";
import { Notifications, RequestNotifications } from "./ui/notifications.ts";
import { OutputPanels } from "./ui/output/output-panels.ts";
import { Overview } from "./ui/output/overview.ts";
import { TextDocuments } from "./ui/output/text-documents.ts";
import { PromptEditors } from "./ui/prompt-editors.ts";
import { Settings } from "./ui/settings.ts";
import { StatusBar } from "./ui/status-bar.ts";
import { ListOptions } from "./ui/tree/list-options.ts";
import { TASK_VIEW, TaskView } from "./ui/tree/task-view.ts";
import { Unread } from "./ui/tree/unread.ts";
import type { News } from "./ui/while-away.ts";

/** The fields of the extension's own `package.json` that are read. */
interface Manifest {
  readonly version: string;
  readonly contributes: { readonly commands: readonly { readonly command: string }[] };
}

/**
 * Creates the UI and connects it to the folders. Code that works on folders is loaded, and all slow work is done, after
 * this function has returned.
 */
export function activate(context: vscode.ExtensionContext): AsyncAgentsApi {
  // The editor would dispose the log before the parts that write to it; `DisposableStore` disposes in reverse order.
  const parts = new DisposableStore();
  context.subscriptions.push(parts);
  const manifest = context.extension.packageJSON as Manifest;
  const own = <T extends { dispose(): unknown }>(part: T): T => parts.add(part);

  const channel = own(vscode.window.createOutputChannel("Async Agents", { log: true }));
  const logger = channelLogger(channel);
  const settings = new Settings();
  const folders = own(new Folders(vscode.workspace, logger));
  const known = own(new AllTasks(folders, logger));
  const tasks = routedCommands(folders, known);

  const list = own(new ListOptions(context.workspaceState));
  const keys = new ContextKeys();
  const trouble = own(new DaemonTrouble(logger));
  const documents = own(new TextDocuments());
  const panelParts = { known, folders, tasks, documents, logger };
  const panels = own(new OutputPanels(context.extensionUri, panelParts));
  own(panels.registerSerializer());
  const overview = own(new Overview(context.extensionUri, panelParts));
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
      isListShown: () => view.visible,
    }),
  );
  const firstSteps = own(new FirstSteps(context.globalState, keys, known, folders, isShown));
  own(new StatusBar(known, folders));

  const textChanges = own(new vscode.EventEmitter<vscode.Uri>());
  const openReview = async (): Promise<Review> => {
    const { Review } = await import("./ui/later.ts");
    return own(new Review({ known, folders, state: context.workspaceState, keys, textChanges, logger }));
  };
  let opening: Promise<Review> | undefined;
  const review = (): Promise<Review> => (opening ??= openReview());
  own(
    vscode.workspace.registerTextDocumentContentProvider(CHANGE_SCHEME, {
      onDidChange: textChanges.event,
      provideTextDocumentContent: async (uri) => (await review()).text(uri),
    }),
  );

  const { execPath, platform } = process;
  const env = process.env as Environment;
  const stateFolder = defaultStateFolder({ platform, env, home: homedir() });
  const openDaemon = async (): Promise<DaemonClient> => {
    const { DaemonClient } = await import("./window.ts");
    const script = vscode.Uri.joinPath(context.extensionUri, "dist", "daemon.cjs").fsPath;
    const { version } = manifest;
    const client = own(
      new DaemonClient({ execPath, script, env, stateFolder, version, clock: systemClock, logger }),
    );
    trouble.follow(client);
    return client;
  };
  let openingDaemon: Promise<DaemonClient> | undefined;
  const daemon = (): Promise<DaemonClient> => (openingDaemon ??= openDaemon());

  const commandContext: CommandContext = {
    folders,
    known,
    tasks,
    panels,
    overview,
    unread,
    promptEditors: own(new PromptEditors(context.workspaceState, keys)),
    memory: new LaunchMemory(context.workspaceState),
    settings,
    logger,
    openText: (name, text) => documents.open(name, text),
    review,
    showLog: () => channel.show(),
    daemon,
    showLaunching: (what, folder) => view.tree.launching.show(what, folder),
    reveal: (taskID, options) => void view.reveal(taskID, options),
    extensionUri: context.extensionUri,
    firstSteps,
    list,
    frontID: () => view.frontID(panels.activeID),
    clickedID: () => view.clickedID(),
  };
  own(
    registerCommands(
      commandContext,
      [...manifest.contributes.commands.map(({ command }) => command), ...INTERNAL_COMMANDS],
      async () => (await import("./ui/later.ts")).commands,
    ),
  );
  own(new RequestNotifications(commandContext, isShown));
  own(offerProblemActions());
  const onDidLaunch = (): void => firstSteps.finish("agentTools");
  own(new AgentTools({ folders, logger, onDidLaunch }, settings));

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
      void import("./ui/later.ts").then(({ showClosed }) =>
        showClosed(folder, running, isOwnServer, openFolder, logger),
      );
  };

  const showNews = (folderName: string, news: News): void => {
    const about = folders.all.length > 1 ? folderName : undefined;
    void import("./ui/later.ts").then(({ showNews }) => showNews({ folderName: about, showTasks }, news));
  };

  const start = async (): Promise<void> => {
    const [{ folderOpener, followSavedFiles, offerOwnDatabase, warnOfUntestedVersions }, client] =
      await Promise.all([import("./window.ts"), daemon()]);
    own(warnOfUntestedVersions(folders, context.globalState));
    own(offerOwnDatabase(folders, context.globalState));
    own(followSavedFiles(folders));
    const openFolder = folderOpener({ context, view, daemon: client, showNews, logger });
    own(folders.onWillClose((folder) => warnOfWork(folder, openFolder)));
    const opening = folders.open(openFolder);
    useEdited(vscode.window.activeTextEditor);
    await opening;
    connectWhenSeen();
  };
  const ready = new Promise<void>((resolve) =>
    setImmediate(() => {
      start()
        .catch((error: unknown) => logger.error("Couldn't open the folders.", error))
        .finally(resolve);
    }),
  );

  const taskChanges = own(new vscode.EventEmitter<TaskChange>());
  own(known.onDidChange((change) => taskChanges.fire(change)));
  const sessionChanges = own(new vscode.EventEmitter<string | undefined>());
  const fireSession = (): void => sessionChanges.fire(folders.current?.session.id);
  own(folders.onDidChangeCurrent(fireSession));
  own(
    folders.follow((folder) =>
      folder.session.onDidChange(() => {
        if (folder === folders.current) fireSession();
      }),
    ),
  );
  return createApi(commandContext, ready, taskChanges.event, sessionChanges.event);
}

/** Writes to the editor's log channel, which adds the time and honours the user's log level. */
function channelLogger(channel: vscode.LogOutputChannel): Logger {
  return {
    debug: (message) => channel.debug(message),
    info: (message) => channel.info(message),
    warn: (message) => channel.warn(message),
    error: (message, error) => channel.error(error === undefined ? message : `${message} ${detail(error)}`),
  };
}

function detail(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
}
