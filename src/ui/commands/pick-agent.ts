import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { modelText } from "../../engine/model-ref.ts";
import { requireFolder } from "../folders/require-folder.ts";
import { withoutIcons } from "../plain-text.ts";
import type { BACK } from "../quick-input.ts";
import { askChoice, askChoices, type Choice, type Step } from "./ask-choice.ts";
import type { CommandContext } from "./command.ts";

/** Asks for an agent; Enter takes the one of the settings, else the one that was launched last. */
export function pickAgent(
  context: CommandContext,
  step: Step,
  active?: string,
): Promise<string | typeof BACK | undefined> {
  return askChoice({
    ...step,
    placeholder: vscode.l10n.t("Which agent is to do it?"),
    choices: agentChoices(context),
    active: active ?? usualAgent(context),
  });
}

/** Asks for one or more agents. `titleFor` says what so many of them come to. */
export function pickAgents(
  context: CommandContext,
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
function usualAgent({ settings, memory }: CommandContext): string | undefined {
  return settings.engine().defaultAgent ?? memory.agent;
}

async function agentChoices({ folders, settings }: CommandContext): Promise<readonly Choice<string>[]> {
  const agents = await requireFolder(folders).engine.agents();
  if (agents.length === 0)
    throw new Refusal(
      "unknown-agent",
      vscode.l10n.t(
        "OpenCode offers no agent that tasks could run as. Add one to its configuration, then try again.",
      ),
    );
  const { defaultModel } = settings.engine();
  return agents.map(({ name, description, model }) => ({
    label: name,
    description: modelText(defaultModel ?? model),
    detail: withoutIcons(description ?? ""),
    value: name,
  }));
}
