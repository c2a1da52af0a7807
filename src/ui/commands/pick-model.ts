import * as vscode from "vscode";
import { modelText } from "../../engine/model-ref.ts";
import type { ModelInfo } from "../../engine/server-model.ts";
import type { ModelRef } from "../../engine/task.ts";
import { BACK, askChoice, type Choice, type Step } from "../quick-input.ts";
import type { LaunchContext } from "./command.ts";

/** Stands for the model that a task gets for which none is chosen. */
const USUAL = "";

/** Asks for a model, or for the usual one: the one of the settings, else the agent's own. */
export async function pickModel(
  { folder }: LaunchContext,
  step: Step,
  active: ModelRef | undefined,
): Promise<{ readonly model: ModelRef | undefined } | typeof BACK | undefined> {
  const { defaultModel } = folder.settings.engine();
  const models = folder.calls.models();
  const picked = await askChoice<string>({
    ...step,
    placeholder: vscode.l10n.t("Which model is to be used?"),
    choices: models.then((found) => [
      { label: usualModel(), description: modelText(defaultModel), value: USUAL },
      ...byProvider(found),
    ]),
    active: modelText(active),
  });
  if (picked === undefined || picked === BACK) return picked;
  return { model: (await models).find(({ ref }) => modelText(ref) === picked)?.ref };
}

/** What is said of a task for which no model is chosen. */
export function usualModel(): string {
  return vscode.l10n.t("The agent's own, or the default");
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
