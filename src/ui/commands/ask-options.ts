import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { modelText } from "../../engine/model-ref.ts";
import type { Subject } from "../editor/subject.ts";
import { withoutIcons } from "../plain-text.ts";
import { BACK, askChoice, type Choice, type Step } from "../quick-input.ts";
import type { LaunchContext } from "./command.ts";
import type { LaunchPlan } from "../launch-plan.ts";
import { pickAgents } from "./pick-agent.ts";
import { pickModel, usualModel } from "./pick-model.ts";

const EXCERPT_LENGTH = 80;

type Option = "on" | "subject" | "agents" | "model" | "fork" | "editor" | "sections";

export interface OptionsQuestion extends Step {
  readonly plan: LaunchPlan;
  /** What the plan is for; empty: it is still to be written. */
  readonly prompts: readonly string[];
  /** Whether the text can go on in an editor: it is not in one. */
  readonly canMove: boolean;
}

/** What the person chose, and where they go from here; `sections`: into an editor, for several prompts. */
export interface OptionsAnswer {
  readonly plan: LaunchPlan;
  readonly goes: "on" | "back" | "editor" | "sections" | undefined;
}

/** Shows what of a launch can be chosen, and lets the person change it. */
export async function askOptions(context: LaunchContext, question: OptionsQuestion): Promise<OptionsAnswer> {
  // Asked for now, the models are there when they are wanted; who wants them hears of a failure.
  context.folder.calls.models().catch(() => undefined);
  let active: Option | undefined;
  for (let { plan } = question; ;) {
    const option = await askChoice<Option>({
      ...question,
      placeholder: vscode.l10n.t("Change what you like, then launch."),
      choices: optionChoices(context, { ...question, plan }),
      active,
    });
    switch (option) {
      case undefined:
        return { plan, goes: undefined };
      case BACK:
        return { plan, goes: "back" };
      case "on":
      case "editor":
      case "sections":
        return { plan, goes: option };
      case "fork":
        plan = { ...plan, fork: plan.fork ? undefined : forkOfActive(context) };
        break;
      case "subject":
        plan = { ...plan, leavesOutSubject: !plan.leavesOutSubject };
        break;
      case "agents": {
        const step = { title: vscode.l10n.t("Launch Task: Agents"), canGoBack: true };
        const agents = await pickAgents(context, step, plan.agents);
        if (agents !== undefined && agents !== BACK) plan = { ...plan, agents };
        break;
      }
      case "model": {
        const step = { title: vscode.l10n.t("Launch Task: Model"), canGoBack: true };
        const picked = await pickModel(context, step, plan.model);
        if (picked !== undefined && picked !== BACK) plan = { ...plan, model: picked.model };
      }
    }
    active = option;
  }
}

function optionChoices(
  { folder }: LaunchContext,
  { plan, prompts, canMove }: OptionsQuestion,
): readonly Choice<Option>[] {
  const { agents, model, fork, subject } = plan;
  const write: Choice<Option> = { label: vscode.l10n.t("$(edit) Write in an Editor"), value: "editor" };
  const sections: Choice<Option> = {
    label: vscode.l10n.t("$(run-all) Several Prompts in an Editor"),
    description: vscode.l10n.t("a task for each section"),
    value: "sections",
  };
  const forked: Choice<Option> = {
    label: fork
      ? vscode.l10n.t("$(check) Fork of the Active Session")
      : vscode.l10n.t("$(repo-forked) Fork of the Active Session"),
    description: fork
      ? vscode.l10n.t("on: the task inherits the conversation “{0}”", withoutIcons(fork.title))
      : vscode.l10n.t("off: the task knows its prompt alone"),
    value: "fork",
  };
  return [
    goOnChoice(plan, prompts),
    { label: vscode.l10n.t("$(person) Agents…"), description: agents.join(", "), value: "agents" },
    {
      label: vscode.l10n.t("$(chip) Model…"),
      description: model ? modelText(model) : usualModel(),
      value: "model",
    },
    ...(subject ? [subjectChoice(subject, plan.leavesOutSubject === true)] : []),
    ...(folder.session.session ? [forked] : []),
    ...(canMove ? [write, sections] : []),
  ];
}

function subjectChoice({ title }: Subject, isLeftOut: boolean): Choice<Option> {
  const name = withoutIcons(title);
  return isLeftOut
    ? {
        label: vscode.l10n.t("$(circle-slash) Without {0}", name),
        description: vscode.l10n.t("off: the prompt goes alone"),
        value: "subject",
      }
    : {
        label: vscode.l10n.t("$(check) With {0}", name),
        description: vscode.l10n.t("on: it goes with the prompt"),
        value: "subject",
      };
}

function goOnChoice({ agents, fork }: LaunchPlan, prompts: readonly string[]): Choice<Option> {
  if (prompts.length === 0) return { label: vscode.l10n.t("$(pencil) Write the Prompt"), value: "on" };
  const count = prompts.length * agents.length;
  const label = fork
    ? vscode.l10n.t("$(arrow-right) Review the Fork")
    : count > 1
      ? vscode.l10n.t("$(play) Launch {0} Tasks", count)
      : vscode.l10n.t("$(play) Launch");
  const detail = withoutIcons(excerpt(oneLine(prompts.join(" | ")), EXCERPT_LENGTH));
  return { label, detail, value: "on" };
}

/** A fork of the active session; undefined: there is none. */
function forkOfActive({ folder }: LaunchContext): LaunchPlan["fork"] {
  const active = folder.session.session;
  if (!active) return undefined;
  return { title: active.title, request: { sourceSessionID: active.id }, parentSessionID: active.id };
}
