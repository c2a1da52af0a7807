import * as vscode from "vscode";
import { DisposableStore } from "./engine/disposable-store.ts";
import { messageOf } from "./engine/errors.ts";
import type { Logger } from "./engine/ports.ts";
import type { TaskChange } from "./engine/registry.ts";
import { AgentTools } from "./ui/agent-tools.ts";
import { createApi, type AsyncAgentsApi } from "./ui/api.ts";
import { CHANGE_SCHEME } from "./ui/changes/change-side.ts";
import { type CommandContext, registerCommands } from "./ui/commands/command.ts";
import { INTERNAL_COMMANDS } from "./ui/commands/internal-commands.ts";
import { AllTasks, routedCommands } from "./ui/folders/all-tasks.ts";
import { Folders } from "./ui/folders/folders.ts";
import { OutputPanels } from "./ui/output/output-panels.ts";
import { Overview } from "./ui/output/overview.ts";
import { TextDocuments } from "./ui/output/text-documents.ts";
import { loadLater } from "./ui/load-later.ts";

/** The fields of the extension's own `package.json` that are read. */
interface Manifest {
  readonly version: string;
  readonly contributes: { readonly commands: readonly { readonly command: string }[] };
}

/**
 * Creates what the editor may ask for immediately: commands, tools, restored editors, the API for programs. Everything
 * else is loaded and created after this function has returned.
 */
export function activate(context: vscode.ExtensionContext): AsyncAgentsApi {
  // The editor would dispose the log before the parts that write to it; `DisposableStore` disposes in reverse order.
  const parts = new DisposableStore();
  context.subscriptions.push(parts);
  const { version, contributes } = context.extension.packageJSON as Manifest;
  const own = <T extends { dispose(): unknown }>(part: T): T => parts.add(part);

  const channel = own(vscode.window.createOutputChannel("Async Agents", { log: true }));
  const logger = channelLogger(channel);
  const folders = own(new Folders(vscode.workspace, logger));
  const known = own(new AllTasks(folders, logger));
  const tasks = routedCommands(folders, known);
  const documents = own(new TextDocuments());
  const panelParts = { known, folders, tasks, documents, logger };
  const panels = own(new OutputPanels(context.extensionUri, panelParts));
  own(panels.registerSerializer());
  const overview = own(new Overview(context.extensionUri, panelParts));

  const textChanges = own(new vscode.EventEmitter<vscode.Uri>());
  const onDidLaunch = async (): Promise<void> => (await commandContext()).firstSteps.finish("agentTools");
  const agentTools = own(new AgentTools({ folders, logger, onDidLaunch: () => void onDidLaunch() }));

  const openParts = async (): Promise<{ commandContext: CommandContext; ready: Promise<void> }> => {
    await new Promise(setImmediate);
    const { openWindow } = await import("./window.ts");
    const showLog = (): void => channel.show();
    const openText = (name: string, text: string): Promise<void> => documents.open(name, text);
    const shown = { panels, overview, textChanges, openText, showLog };
    return openWindow({ context, version, own, folders, known, tasks, agentTools, logger, ...shown });
  };
  const opened = openParts();
  const ready = opened
    .then((window) => window.ready)
    .catch((error: unknown) => logger.error("Couldn't open the window.", error));
  const commandContext = async (): Promise<CommandContext> => (await opened).commandContext;

  own(
    vscode.workspace.registerTextDocumentContentProvider(CHANGE_SCHEME, {
      onDidChange: textChanges.event,
      provideTextDocumentContent: async (uri) => (await (await commandContext()).review()).text(uri),
    }),
  );
  own(
    registerCommands(
      [...contributes.commands.map(({ command }) => command), ...INTERNAL_COMMANDS],
      commandContext,
      loadLater,
      logger,
    ),
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
  const changes = { taskChanges: taskChanges.event, sessionChanges: sessionChanges.event };
  return createApi({ folders, known, tasks, opened: commandContext, ready, ...changes });
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
