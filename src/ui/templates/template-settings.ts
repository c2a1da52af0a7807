import * as vscode from "vscode";
import { asTemplate, readTemplates, type TemplateList } from "./template.ts";

const SECTION = "asyncagents";
const NAME = "templates";

/** The templates of the person and of the workspace; the workspace's own come first where both have the same name. */
export function templateList(): TemplateList {
  const settings = vscode.workspace.getConfiguration(SECTION).inspect<unknown>(NAME);
  return readTemplates([settings?.globalValue, settings?.workspaceValue, settings?.workspaceFolderValue]);
}

/** Keeps a prompt among the person's own templates. */
export async function saveTemplate(name: string, prompt: string): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const own = configuration.inspect<object>(NAME)?.globalValue;
  const templates = { ...own, [name]: asTemplate(prompt) };
  await configuration.update(NAME, templates, vscode.ConfigurationTarget.Global);
}

/** Shows the setting in which templates are written. */
export async function openTemplateSettings(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${SECTION}.${NAME}`);
}
