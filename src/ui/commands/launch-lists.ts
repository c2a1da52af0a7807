import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { modelText } from "../../engine/model-ref.ts";
import { sentence } from "../../engine/sentence.ts";
import type { ModelInfo } from "../../engine/server-model.ts";
import type { ModelRef } from "../../engine/task.ts";
import type { Folder } from "../folders/folder.ts";
import { withoutIcons } from "../plain-text.ts";
import { askChoice, askChoices, type Choice, type Heading } from "../quick-input.ts";
import { BACK, type Answer } from "../wizard.ts";
import type { LaunchContext } from "./command.ts";

/**
 * Asks for an agent; the default is the one from the settings, otherwise the one launched last.
 * @param others rows below the agents
 */
export function pickAgent<T = never>(
  context: LaunchContext,
  heading: Heading,
  active?: string,
  others: readonly Choice<T>[] = [],
): Promise<Answer<string | T>> {
  return askChoice<string | T>({
    ...heading,
    placeholder: vscode.l10n.t("Select an agent"),
    choices: agentChoices(context).then((agents) => [...agents, ...others]),
    active: active ?? usualAgent(context),
  });
}

/** Asks for one or more agents. `titleFor` returns the title for a number of selected agents. */
export function pickAgents(
  context: LaunchContext,
  heading: Heading,
  picked: readonly string[],
  titleFor?: (count: number) => string,
): Promise<Answer<readonly string[]>> {
  return askChoices({
    ...heading,
    placeholder: vscode.l10n.t("Each prompt is sent to each selected agent"),
    choices: agentChoices(context),
    picked: picked.length > 0 ? picked : [usualAgent(context)],
    titleFor,
  });
}

/** Undefined selects the first agent of the list. */
function usualAgent({ folder, memory }: LaunchContext): string | undefined {
  return folder.settings.engine().defaultAgent ?? memory.agent;
}

async function agentChoices({ folder }: LaunchContext): Promise<readonly Choice<string>[]> {
  const agents = await folder.calls.agents();
  if (agents.length === 0)
    throw new Refusal(
      "unknown-agent",
      sentence("OpenCode has no agents that can run tasks. Add one to its configuration, then try again."),
    );
  const { defaultModel } = folder.settings.engine();
  return agents.map(({ name, description, model }) => ({
    label: name,
    description: modelText(defaultModel ?? model),
    detail: withoutIcons(description ?? ""),
    value: name,
  }));
}

/** The value of the choice to use the default model. */
const USUAL = "";

/** Asks for a model, or for the usual one: the default from the settings, otherwise the agent's own. */
export async function pickModel(
  { folder }: LaunchContext,
  heading: Heading,
  active: ModelRef | undefined,
): Promise<Answer<{ readonly model: ModelRef | undefined }>> {
  const { defaultModel } = folder.settings.engine();
  const models = folder.calls.models();
  const picked = await askChoice<string>({
    ...heading,
    placeholder: vscode.l10n.t("Select a model"),
    choices: models.then((found) => [
      { label: usualModel(), description: modelText(defaultModel), value: USUAL },
      ...byProvider(found),
    ]),
    active: modelText(active),
  });
  if (picked === undefined || picked === BACK) return picked;
  return { model: (await models).find(({ ref }) => modelText(ref) === picked)?.ref };
}

/** The text for a task for which no model is chosen. */
export function usualModel(): string {
  return vscode.l10n.t("The agent's own model, or the default");
}

function byProvider(models: readonly ModelInfo[]): readonly Choice<string>[] {
  const providers = [...new Set(models.map(({ provider }) => provider))];
  return providers.flatMap((provider) => [
    { label: provider, kind: vscode.QuickPickItemKind.Separator },
    ...models.filter((model) => model.provider === provider).map(modelChoice),
  ]);
}

function modelChoice({ ref, name, contextLimit }: ModelInfo): Choice<string> {
  const tokens = contextLimit?.toLocaleString(vscode.env.language, { notation: "compact" });
  const size = tokens === undefined ? "" : vscode.l10n.t("{0} tokens", tokens);
  return {
    label: modelText(ref),
    description: [name, size].filter(Boolean).join(" · "),
    value: modelText(ref),
  };
}

/** Asks for one of the workspace's folders. */
export function pickFolder({ folders, folder }: LaunchContext, heading: Heading): Promise<Answer<Folder>> {
  return askChoice({
    ...heading,
    placeholder: vscode.l10n.t("Select the folder to work in"),
    choices: folders.all.map((each) => ({
      label: withoutIcons(each.name),
      description: withoutIcons(each.uri.fsPath),
      value: each,
    })),
    active: folder,
  });
}
