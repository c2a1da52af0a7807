import * as vscode from "vscode";
import { ConnectionError, type ConnectionFailure, type ConnectionState } from "../../engine/connection.ts";
import { requireFolder, type Folder } from "../folders/folders.ts";
import { inform, offer } from "../dialogs.ts";
import { isMissing, translate, showError } from "../messages.ts";
import { title, withoutIcons, visible } from "../plain-text.ts";
import { requireTrust } from "../connector.ts";
import type { ServerContext } from "./command.ts";
import type { ConfigPlan } from "../../rpc/contract.ts";

const WALKTHROUGH = "async-agents.opencode-async-agents#firstSteps";
const DOCUMENTATION = "https://opencode.ai/docs/#install";
/** How long to wait for a shell's first prompt. */
const SHELL_START_MS = 2_000;

/**
 * Connects the folder of the task whose panel asks for it, or the current folder; reads everything again if it is
 * already connected. A task that no folder knows may belong to any that isn't connected; where connecting failed, it would
 * probably fail again. If OpenCode isn't found, helps the user install it, also without a folder.
 */
export async function connect(context: ServerContext, taskID: unknown): Promise<void> {
  const { folders, settings } = context;
  if ((vscode.workspace.workspaceFolders?.length ?? 0) > 0) requireTrust();
  const inState = (kind: ConnectionState["kind"]): Folder | undefined =>
    folders.all.find(({ connector: { state } }) => state.kind === kind);
  const asked =
    typeof taskID === "string"
      ? (folders.of(taskID) ?? inState("disconnected") ?? inState("failed"))
      : undefined;
  const connector = isReady() ? (asked ?? requireFolder(folders)).connector : undefined;
  if (connector?.state.kind === "connected") return connector.refresh();
  try {
    if (connector) return void (await connector.connectAsking());
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const place = settings.server().url ?? (await findAsking(context));
  if (place === undefined) return;
  await connector?.connectAsking();
  void showResult(context, place);
}

export async function openWalkthrough({ firstSteps }: ServerContext): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH, false);
  firstSteps.shown();
}

/** Opens the page on the two major versions of OpenCode. */
export async function explainOpenCode2({ extensionUri }: ServerContext): Promise<void> {
  const page = vscode.Uri.joinPath(extensionUri, "docs", "opencode-2.md");
  await vscode.commands.executeCommand("markdown.showPreview", page);
}

/** Agents need an open folder that is trusted. */
function isReady(): boolean {
  return (vscode.workspace.workspaceFolders?.length ?? 0) > 0 && vscode.workspace.isTrusted;
}

async function showResult({ folders }: ServerContext, place: string): Promise<void> {
  const state = folders.current?.connector.state;
  if (state?.kind === "connected") {
    const message = vscode.l10n.t("OpenCode {0} is connected: {1}", state.version, place);
    if (await offer(message, vscode.l10n.t("Launch Task…")))
      await vscode.commands.executeCommand("asyncagents.launch");
  } else if (!isReady())
    inform(vscode.l10n.t("Found OpenCode at {0}. Open a trusted folder to launch tasks.", place));
}

/** Undefined if the user gives up. */
async function findAsking(context: ServerContext): Promise<string | undefined> {
  for (;;) {
    try {
      return await context.daemon.findExecutable(context.settings.server().path);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (!(await help(context, error.failure))) return undefined;
    }
  }
}

interface Help extends vscode.QuickPickItem {
  /** Resolves to whether to search for OpenCode again. */
  run(): Promise<boolean>;
}

async function help(context: ServerContext, { code, message }: ConnectionFailure): Promise<boolean> {
  const isBesideAnother = code === "too-new";
  const command = await context.daemon.installCommand(isBesideAnother);
  const configuredPath = context.settings.server().path;
  const ways: readonly Help[] = [
    ...(command === undefined ? [] : installWays(command, isBesideAnother)),
    isBesideAnother
      ? {
          label: vscode.l10n.t("$(book) What Is the Difference?"),
          detail: vscode.l10n.t("OpenCode 2, OpenCode 1, and what happens to your sessions"),
          run: () => explainOpenCode2(context).then(() => false),
        }
      : {
          label: vscode.l10n.t("$(book) Open the Installation Guide"),
          detail: DOCUMENTATION,
          run: async () => {
            await vscode.env.openExternal(vscode.Uri.parse(DOCUMENTATION, true));
            return lookAgain(vscode.l10n.t("Search again when OpenCode is installed."));
          },
        },
    {
      label: vscode.l10n.t("$(folder-opened) Select Executable…"),
      detail: vscode.l10n.t("OpenCode 1 is installed in another location"),
      run: chooseExecutable,
    },
    ...(configuredPath === undefined
      ? []
      : [
          {
            label: vscode.l10n.t("$(search) Search the Usual Locations"),
            detail: vscode.l10n.t("Removes this path from the settings: {0}", withoutIcons(configuredPath)),
            run: () => setPath(undefined),
          },
        ]),
    { label: vscode.l10n.t("$(refresh) Search Again"), run: async () => true },
  ];
  const way = await vscode.window.showQuickPick(ways, {
    title: vscode.l10n.t("Set Up OpenCode"),
    placeHolder: title(translate(message)),
    ignoreFocusOut: true,
  });
  return way ? way.run() : false;
}

function installWays(command: string, isPrivate: boolean): readonly Help[] {
  return [
    {
      label: isPrivate
        ? vscode.l10n.t("$(terminal) Install OpenCode 1 in a Terminal")
        : vscode.l10n.t("$(terminal) Install in a Terminal"),
      detail: isPrivate
        ? vscode.l10n.t("For Async Agents only; enters the command without running it")
        : vscode.l10n.t("Enters the command without running it"),
      run: () => installInTerminal(command),
    },
    {
      label: vscode.l10n.t("$(copy) Copy Install Command"),
      detail: withoutIcons(command),
      run: async () => {
        await vscode.env.clipboard.writeText(command);
        return lookAgain(vscode.l10n.t("Copied the command. Search again when it has finished."));
      },
    },
  ];
}

async function installInTerminal(command: string): Promise<boolean> {
  const terminal = vscode.window.createTerminal({
    name: vscode.l10n.t("Install OpenCode"),
    iconPath: new vscode.ThemeIcon("terminal"),
  });
  terminal.show();
  await isPrompting(terminal);
  // The user decides whether to run the command.
  terminal.sendText(command, false);
  return lookAgain(vscode.l10n.t("Press Enter in the terminal to install OpenCode, then search again."));
}

/** Resolves when the shell shows its prompt, or after a timeout. Text sent earlier would be displayed twice. */
async function isPrompting(terminal: vscode.Terminal): Promise<void> {
  let settle = (): void => undefined;
  const prompts = new Promise<void>((resolve) => (settle = resolve));
  const timer = setTimeout(settle, SHELL_START_MS);
  const subscription = vscode.window.onDidChangeTerminalShellIntegration((event) => {
    if (event.terminal === terminal) settle();
  });
  await prompts;
  clearTimeout(timer);
  subscription.dispose();
}

function lookAgain(message: string): Promise<boolean> {
  return offer(message, vscode.l10n.t("Search Again"));
}

async function chooseExecutable(): Promise<boolean> {
  const [file] =
    (await vscode.window.showOpenDialog({
      title: vscode.l10n.t("OpenCode Executable"),
      openLabel: vscode.l10n.t("Select"),
    })) ?? [];
  return file ? setPath(file.fsPath) : true;
}

/** Undefined removes the path from the settings. */
async function setPath(path: string | undefined): Promise<boolean> {
  const { Global } = vscode.ConfigurationTarget;
  await vscode.workspace.getConfiguration("asyncagents").update("server.path", path, Global);
  return true;
}

type Action = "install" | "remove";

/** The edit to one of OpenCode's configurations. */
interface Edit {
  readonly action: Action;
  readonly scope: "project" | "user";
}

/** Adds the agent tools to one of OpenCode's configurations, or removes them from it. */
export async function configureAgentTools(context: ServerContext): Promise<void> {
  const folder = requireFolder(context.folders);
  requireTrust();
  const edit = await pickEdit(folder.settings.agentToolsEnabled());
  if (!edit) return;
  const { action, scope } = edit;
  const calls = await folder.open();
  const plan = await calls.planAgentTools(action, scope);
  if (!plan || plan.after === plan.before) {
    return inform(nothingToDo(action, plan?.path));
  }
  if (!(await confirmEdit(action, plan))) return;
  await calls.applyAgentTools(plan);
  if (action === "install") context.firstSteps.finish("agentTools");
  void showEdit(action, plan.path).catch((error: unknown) => showError(error, context.logger));
}

async function pickEdit(canInstall: boolean): Promise<Edit | undefined> {
  const own = vscode.l10n.t("Your user OpenCode configuration.");
  const install: readonly (vscode.QuickPickItem & Edit)[] = [
    {
      label: vscode.l10n.t("$(add) Add to This Folder"),
      detail: vscode.l10n.t(
        "The folder's OpenCode configuration. The entry contains a path on this computer; don't commit it.",
      ),
      action: "install",
      scope: "project",
    },
    { label: vscode.l10n.t("$(add) Add to All Folders"), detail: own, action: "install", scope: "user" },
  ];
  const remove: readonly (vscode.QuickPickItem & Edit)[] = [
    {
      label: vscode.l10n.t("$(trash) Remove from This Folder"),
      detail: vscode.l10n.t("The folder's OpenCode configuration."),
      action: "remove",
      scope: "project",
    },
    {
      label: vscode.l10n.t("$(trash) Remove from All Folders"),
      detail: own,
      action: "remove",
      scope: "user",
    },
  ];
  return vscode.window.showQuickPick([...(canInstall ? install : []), ...remove], {
    title: vscode.l10n.t("Configure Agent Tools in OpenCode"),
    placeHolder: vscode.l10n.t("Select a configuration"),
  });
}

async function confirmEdit(action: Action, { path, before, entry }: ConfigPlan): Promise<boolean> {
  const agree = action === "install" ? vscode.l10n.t("Add") : vscode.l10n.t("Remove");
  const [question, what] =
    action === "remove"
      ? [
          vscode.l10n.t("Remove the agent tools from {0}?", path),
          vscode.l10n.t('This entry is removed from "plugin"; nothing else changes:'),
        ]
      : before === undefined
        ? [
            vscode.l10n.t("Create {0} with the agent tools?", path),
            vscode.l10n.t('The file doesn\'t exist yet. It will be created with this entry in "plugin":'),
          ]
        : [
            vscode.l10n.t("Add the agent tools to {0}?", path),
            vscode.l10n.t('This entry is added to "plugin"; nothing else changes:'),
          ];
  const options = { modal: true, detail: visible(`${what}\n\n${entry}`) };
  return (await vscode.window.showInformationMessage(visible(question), options, agree)) === agree;
}

function nothingToDo(action: Action, path: string | undefined): string {
  if (action === "install" && path !== undefined)
    return vscode.l10n.t("The agent tools are already in {0}.", path);
  return vscode.l10n.t("The agent tools aren't in this configuration.");
}

/** Reports the edit. It takes effect when OpenCode restarts; servers of the extension don't depend on it. */
async function showEdit(action: Action, path: string): Promise<void> {
  const message =
    action === "install"
      ? vscode.l10n.t(
          "Added the agent tools to {0}. OpenCode servers that you start yourself have them after a restart.",
          path,
        )
      : vscode.l10n.t(
          "Removed the agent tools from {0}. OpenCode servers that you start yourself keep them until a restart.",
          path,
        );
  if (await offer(message, vscode.l10n.t("Open File")))
    await vscode.window.showTextDocument(vscode.Uri.file(path));
}
