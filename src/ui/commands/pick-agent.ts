import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { modelText } from "../../engine/model-ref.ts";
import { sentence } from "../../engine/sentence.ts";
import { withoutIcons } from "../plain-text.ts";
import { type BACK, askChoice, askChoices, type Choice, type Step } from "../quick-input.ts";
import type { LaunchContext } from "./command.ts";

/** The person wants an agent of another folder. */
export const OTHER_FOLDER = Symbol("other folder");

/** Asks for an agent; Enter takes the one of the settings, else the one that was launched last. */
export async function pickAgent(
  context: LaunchContext,
  step: Step,
  active?: string,
): Promise<string | typeof BACK | undefined> {
  const agent = await ask(context, step, agentChoices(context), active);
  return agent === OTHER_FOLDER ? undefined : agent;
}

/** As {@link pickAgent}; where the workspace has several folders, another one can be chosen. */
export async function pickAgentOrFolder(
  context: LaunchContext,
  step: Step,
  active?: string,
): Promise<string | typeof BACK | typeof OTHER_FOLDER | undefined> {
  const other: Choice<typeof OTHER_FOLDER> = {
    label: vscode.l10n.t("$(root-folder) Another Folder…"),
    description: vscode.l10n.t("now: {0}", withoutIcons(context.folder.name)),
    value: OTHER_FOLDER,
  };
  const separator = { label: "", kind: vscode.QuickPickItemKind.Separator };
  const choices = agentChoices(context).then((agents) =>
    context.folders.all.length > 1 ? [...agents, separator, other] : agents,
  );
  return ask(context, step, choices, active);
}

function ask(
  context: LaunchContext,
  step: Step,
  choices: Promise<readonly Choice<string | typeof OTHER_FOLDER>[]>,
  active: string | undefined,
): Promise<string | typeof BACK | typeof OTHER_FOLDER | undefined> {
  return askChoice({
    ...step,
    placeholder: vscode.l10n.t("Which agent is to do it?"),
    choices,
    active: active ?? usualAgent(context),
  });
}

/** Asks for one or more agents. `titleFor` says what so many of them come to. */
export function pickAgents(
  context: LaunchContext,
  step: Step,
  picked: readonly string[],
  titleFor?: (count: number) => string,
): Promise<readonly string[] | typeof BACK | undefined> {
  return askChoices({
    ...step,
    placeholder: vscode.l10n.t("Each prompt goes to each of the agents chosen"),
    choices: agentChoices(context),
    picked: picked.length > 0 ? picked : [usualAgent(context)],
    titleFor,
  });
}

/** Undefined: the first one of the list. */
function usualAgent({ folder, memory }: LaunchContext): string | undefined {
  return folder.settings.engine().defaultAgent ?? memory.agent;
}

async function agentChoices({ folder }: LaunchContext): Promise<readonly Choice<string>[]> {
  const agents = await folder.calls.agents();
  if (agents.length === 0)
    throw new Refusal(
      "unknown-agent",
      sentence(
        "OpenCode offers no agent that tasks could run as. Add one to its configuration, then try again.",
      ),
    );
  const { defaultModel } = folder.settings.engine();
  return agents.map(({ name, description, model }) => ({
    label: name,
    description: modelText(defaultModel ?? model),
    detail: withoutIcons(description ?? ""),
    value: name,
  }));
}
