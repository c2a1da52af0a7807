import * as vscode from "vscode";
import type { ConfigPlan } from "../../rpc/contract.ts";
import { requireFolder } from "../folders/require-folder.ts";
import { showError } from "../human-error.ts";
import { visible, withoutLinks } from "../plain-text.ts";
import type { ServerContext } from "./command.ts";

type Action = "install" | "remove";

/** The edit to one of OpenCode's configurations. */
interface Edit {
  readonly action: Action;
  readonly scope: "project" | "user";
}

/** Adds the agent tools to one of OpenCode's configurations, or removes them from it. */
export async function configureAgentTools(context: ServerContext): Promise<void> {
  const folder = requireFolder(context.folders);
  const edit = await pickEdit(folder.settings.agentToolsEnabled());
  if (!edit) return;
  const { action, scope } = edit;
  const calls = await folder.open();
  const plan = await calls.planAgentTools(action, scope);
  if (!plan || plan.after === plan.before) {
    void vscode.window.showInformationMessage(withoutLinks(nothingToDo(action, plan?.path)));
    return;
  }
  if (!(await confirm(action, plan))) return;
  await calls.applyAgentTools(plan);
  if (action === "install") context.firstSteps.finish("agentTools");
  void tell(action, plan.path).catch((error: unknown) => showError(error, context.logger));
}

async function pickEdit(canInstall: boolean): Promise<Edit | undefined> {
  const own = vscode.l10n.t("Your user OpenCode configuration.");
  const install: readonly (vscode.QuickPickItem & Edit)[] = [
    {
      label: vscode.l10n.t("$(add) Install for This Folder"),
      detail: vscode.l10n.t(
        "The folder's OpenCode configuration. The entry contains a path on this computer; don't commit it.",
      ),
      action: "install",
      scope: "project",
    },
    { label: vscode.l10n.t("$(add) Install for All Folders"), detail: own, action: "install", scope: "user" },
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
    title: vscode.l10n.t("Agent Tools in OpenCode Configuration"),
    placeHolder: vscode.l10n.t("Select a configuration"),
  });
}

async function confirm(action: Action, { path, before, entry }: ConfigPlan): Promise<boolean> {
  const agree = action === "install" ? vscode.l10n.t("Install") : vscode.l10n.t("Remove");
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
async function tell(action: Action, path: string): Promise<void> {
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
  const openFile = vscode.l10n.t("Open File");
  const choice = await vscode.window.showInformationMessage(withoutLinks(message), openFile);
  if (choice === openFile) await vscode.window.showTextDocument(vscode.Uri.file(path));
}
