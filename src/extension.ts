import { homedir } from "node:os";
import * as vscode from "vscode";
import { ToolService } from "./bridge/tool-service.ts";
import { WindowRole } from "./bridge/window-role.ts";
import { ActiveSession } from "./engine/active-session.ts";
import { TaskEngine } from "./engine/engine.ts";
import type { TaskChange, Tombstone } from "./engine/registry.ts";
import { createOpenCodeConnection } from "./opencode/connection.ts";
import type { PluginConfig } from "./opencode/plugin-config.ts";
import { defaultStateFolder } from "./state/private-files.ts";
import { ThreadTokenCounter } from "./tokens/token-counter.ts";
import { AgentTools } from "./ui/agent-tools.ts";
import { createApi, type AsyncAgentsApi } from "./ui/api.ts";
import { systemClock } from "./ui/clock.ts";
import { registerCommands, type CommandContext } from "./ui/commands/command.ts";
import { COMMAND_IDS } from "./ui/commands/command-ids.ts";
import { LaunchMemory } from "./ui/commands/launch-memory.ts";
import { Connector } from "./ui/connector.ts";
import { ContextKeys } from "./ui/context-keys.ts";
import { channelLogger } from "./ui/log.ts";
import { offerProblemActions } from "./ui/editor/problem-actions.ts";
import { Notifications } from "./ui/notifications.ts";
import { createOutputActions } from "./ui/output/output-actions.ts";
import { createOutputSource } from "./ui/output/output-source.ts";
import { OutputPanels } from "./ui/output/output-panels.ts";
import { TextDocuments } from "./ui/output/text-documents.ts";
import { PromptEditors } from "./ui/prompt-editor/prompt-editors.ts";
import { PasswordStore } from "./ui/passwords.ts";
import { RequestNotifications } from "./ui/requests/request-notifications.ts";
import { Settings } from "./ui/settings.ts";
import { StatusBar } from "./ui/status-bar.ts";
import { ListOptions } from "./ui/tree/list-options.ts";
import { TASK_VIEW, TaskView } from "./ui/tree/task-view.ts";

const PICKED_SESSION = "asyncagents.pickedSession";
const TOMBSTONES = "asyncagents.tombstones";

/** Builds the parts and joins them. Everything that takes time happens after this has returned. */
export function activate(context: vscode.ExtensionContext): AsyncAgentsApi {
  const own = <T extends { dispose(): unknown }>(part: T): T => {
    context.subscriptions.push(part);
    return part;
  };

  const channel = own(vscode.window.createOutputChannel("Async Agents", { log: true }));
  const logger = channelLogger(channel);
  const settings = new Settings();
  const directory = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const { env } = process;
  const home = homedir();
  const stateFolder = defaultStateFolder({ platform: process.platform, env, home });
  const bundle = (name: string): string => vscode.Uri.joinPath(context.extensionUri, "dist", name).fsPath;
  const pluginConfig = async (): Promise<PluginConfig> => {
    const { PluginConfig } = await import("./opencode/plugin-config.ts");
    const places = { directory: directory || undefined, env, home };
    return new PluginConfig({ bundle: bundle("opencode-plugin.js"), stateFolder, places, logger });
  };
  const passwords = new PasswordStore(context.secrets);
  const connection = own(
    createOpenCodeConnection({
      directory,
      stateFolder,
      settings: () => settings.server(),
      password: async (url) => passwords.get(url),
      watchdogScript: bundle("watchdog.cjs"),
      execPath: process.execPath,
      env,
      serverEnv: async () => (settings.agentToolsEnabled() ? (await pluginConfig()).serverEnv(env) : env),
      clock: systemClock,
      logger,
    }),
  );
  const { server } = connection;
  const engine = own(
    new TaskEngine({
      server,
      clock: systemClock,
      logger,
      random: Math.random,
      tombstones: {
        load: () => context.workspaceState.get<readonly Tombstone[]>(TOMBSTONES, []),
        save: (tombstones) => void context.workspaceState.update(TOMBSTONES, tombstones),
      },
      tokens: own(new ThreadTokenCounter({ script: bundle("tokenizer.cjs"), clock: systemClock })),
      settings: () => settings.engine(),
    }),
  );
  const session = own(
    new ActiveSession(engine, server, logger, context.workspaceState.get<string>(PICKED_SESSION)),
  );
  const role = own(new WindowRole({ engine, stateFolder, directory, clock: systemClock, logger }));
  const connector = own(
    new Connector(
      connection,
      engine,
      session,
      role,
      passwords,
      settings,
      TASK_VIEW,
      (): boolean => view.visible,
      logger,
    ),
  );

  const list = own(new ListOptions(context.workspaceState));
  const keys = new ContextKeys();
  const view = own(new TaskView(engine, session, connector, list, keys));
  const documents = own(new TextDocuments());
  const source = createOutputSource(engine, connector);
  const panels = own(
    new OutputPanels(
      context.extensionUri,
      source,
      createOutputActions(role.commands, logger),
      documents,
      logger,
    ),
  );
  own(panels.registerSerializer());
  const isShown = (id: string): boolean => panels.isShown(id);
  own(
    new Notifications({
      engine,
      tasks: role.commands,
      logger,
      notifyUser: () => settings.notifyUser(),
      showOutput: (id) => panels.show(id),
      showTasks: () => void vscode.commands.executeCommand(`${TASK_VIEW}.focus`),
      isShown,
    }),
  );
  own(new StatusBar(engine, connector, TASK_VIEW));

  const commandContext: CommandContext = {
    engine,
    tasks: role.commands,
    session,
    connection,
    panels,
    promptEditors: own(new PromptEditors(context.workspaceState, keys)),
    memory: new LaunchMemory(context.workspaceState),
    settings,
    agentToolsConfig: pluginConfig,
    logger,
    ensureConnected: () => connector.ensureConnected(),
    connectAsking: () => connector.connectAsking(),
    refresh: () => connector.refresh(),
    openText: (name, text) => documents.open(name, text),
    addText: (file, text) => documents.add(file, text),
    showLog: () => channel.show(),
    reveal: (taskID) => view.reveal(taskID),
    list,
    selectedID: () => view.selectedID,
  };
  own(
    registerCommands(
      commandContext,
      COMMAND_IDS,
      async () => (await import("./ui/commands/index.ts")).COMMANDS,
    ),
  );
  own(new RequestNotifications(commandContext, isShown));
  own(offerProblemActions());

  const ensureConnected = (): Promise<void> => connector.ensureConnected();
  own(new AgentTools({ known: engine, commands: role.commands, session, ensureConnected, logger }, settings));
  const toolService = own(
    new ToolService({
      connection: connector,
      isEnabled: () => settings.agentToolsEnabled(),
      known: engine,
      commands: role.commands,
      directory,
      stateFolder,
      clock: systemClock,
      logger,
    }),
  );
  own(settings.onDidChange("agentTools", () => toolService.update()));
  own(connection.onDidConnect(() => void pluginConfig().then((config) => config.refreshPlugin())));

  const followAttention = (): void => connection.setWatched(view.visible || engine.active().length > 0);
  own(view.onDidChangeVisibility(followAttention));
  own(engine.onDidChange(followAttention));
  const connectWhenSeen = (): void => {
    if (view.visible && connection.state.kind === "disconnected")
      connector.ensureConnected().catch((error: unknown) => logger.warn(`Not connected: ${String(error)}`));
  };
  own(view.onDidChangeVisibility(connectWhenSeen));
  own(
    session.onDidChange(
      () => void context.workspaceState.update(PICKED_SESSION, session.isPicked ? session.id : undefined),
    ),
  );

  own(settings.onDidChange("maxConcurrentTasks", () => engine.settingsChanged()));
  own(
    settings.onDidChange("server", () => {
      connector
        .reconnect(view.visible)
        .catch((error: unknown) => logger.warn(`Not connected: ${String(error)}`));
    }),
  );

  const start = async (): Promise<void> => {
    await connector.adopt();
    connectWhenSeen();
  };
  own(vscode.workspace.onDidGrantWorkspaceTrust(() => void start()));
  const ready = new Promise<void>((resolve) => setImmediate(() => void start().finally(resolve)));

  const taskChanges = own(new vscode.EventEmitter<TaskChange>());
  own(engine.onDidChange((change) => taskChanges.fire(change)));
  const sessionChanges = own(new vscode.EventEmitter<string | undefined>());
  own(session.onDidChange((id) => sessionChanges.fire(id)));
  return createApi(engine, session, commandContext, ready, taskChanges.event, sessionChanges.event);
}
