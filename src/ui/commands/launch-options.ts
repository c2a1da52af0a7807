import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { modelText } from "../../engine/model-ref.ts";
import type { Subject } from "../editor/subject.ts";
import { folderTitle } from "../folders/require-folder.ts";
import { subjectOf, type LaunchPlan } from "../launch-plan.ts";
import { withoutIcons } from "../plain-text.ts";
import { quotedSelection } from "../prompt-editor/editor-text.ts";
import { joinSections } from "../prompt-editor/sections.ts";
import { aside, askChoice, type Choice } from "../quick-input.ts";
import { BACK, type Move, type Step } from "../wizard.ts";
import type { LaunchContext } from "./command.ts";
import { pickAgents, pickModel, usualModel } from "./launch-lists.ts";
import type { Launching, LaunchOption } from "./launching.ts";

const EXCERPT_LENGTH = 80;

/** Shows the options of a launch, and lets the user change them. */
export const options: Step<Launching> = {
  take: async (state, place) => {
    const { context, plan, prompts, option: active } = state;
    // Loads the models early, so that they are ready when needed. A failure is reported only then.
    context.folder.calls.models().catch(() => undefined);
    const option = await askChoice<LaunchOption>({
      title: folderTitle(context.folders, context.folder, vscode.l10n.t("Launch Task: Options")),
      ...place,
      placeholder: vscode.l10n.t("Change the options, then launch."),
      choices: optionChoices(state),
      active,
    });
    switch (option) {
      case undefined:
      case BACK:
        return option;
      case "on":
        return prompts.length > 0 ? { state: { ...state, option: undefined } } : BACK;
      case "editor":
        return writeInEditor(state);
      case "sections":
        return writeInEditor({ ...state, plan: { ...plan, splits: true } });
      default:
        return { state: { ...state, plan: await changed(context, plan, option), option }, to: options };
    }
  },
};

async function changed(
  context: LaunchContext,
  plan: LaunchPlan,
  option: Exclude<LaunchOption, "on" | "editor" | "sections">,
): Promise<LaunchPlan> {
  switch (option) {
    case "fork":
      return { ...plan, fork: plan.fork ? undefined : forkOfActive(context) };
    case "subject":
      return { ...plan, leavesOutSubject: !plan.leavesOutSubject };
    case "agents": {
      const heading = { title: vscode.l10n.t("Launch Task: Agents"), canGoBack: true };
      return { ...plan, agents: (await aside(pickAgents(context, heading, plan.agents))) ?? plan.agents };
    }
    case "model": {
      const heading = { title: vscode.l10n.t("Launch Task: Model"), canGoBack: true };
      return { ...plan, ...(await aside(pickModel(context, heading, plan.model))) };
    }
  }
}

/** Continues in a prompt editor, which keeps the prompts from then on. */
export async function writeInEditor(state: Launching): Promise<Move<Launching>> {
  const { context, plan, prompts, draft } = state;
  const { promptEditors, folder, memory } = context;
  const isQuoted = prompts.length === 0 && !plan.splits && !subjectOf(plan);
  await promptEditors.open(
    { kind: "launch", plan: { ...plan, folder: folder.uri.toString() } },
    isQuoted ? quotedSelection() : joinSections(prompts),
  );
  if (draft !== undefined) memory.keepDraft(draft, "");
  return { state, to: "end" };
}

function optionChoices({ context, plan, prompts, isInEditor }: Launching): readonly Choice<LaunchOption>[] {
  const { agents, model, fork, subject } = plan;
  const write: Choice<LaunchOption> = { label: vscode.l10n.t("$(edit) Write in an Editor"), value: "editor" };
  const sections: Choice<LaunchOption> = {
    label: vscode.l10n.t("$(run-all) Several Prompts in an Editor"),
    description: vscode.l10n.t("a task for each section"),
    value: "sections",
  };
  const forked: Choice<LaunchOption> = {
    label: fork
      ? vscode.l10n.t("$(check) Fork of the Active Session")
      : vscode.l10n.t("$(repo-forked) Fork of the Active Session"),
    description: fork
      ? vscode.l10n.t('on: the task inherits the conversation "{0}"', withoutIcons(fork.title))
      : vscode.l10n.t("off: the agent sees only the prompt"),
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
    ...(context.folder.session.session ? [forked] : []),
    ...(isInEditor ? [] : [write, sections]),
  ];
}

function subjectChoice({ title }: Subject, isLeftOut: boolean): Choice<LaunchOption> {
  const name = withoutIcons(title);
  return isLeftOut
    ? {
        label: vscode.l10n.t("$(circle-slash) Without {0}", name),
        description: vscode.l10n.t("off: the agent sees only the prompt"),
        value: "subject",
      }
    : {
        label: vscode.l10n.t("$(check) With {0}", name),
        description: vscode.l10n.t("on: sent with the prompt"),
        value: "subject",
      };
}

function goOnChoice({ agents, fork }: LaunchPlan, prompts: readonly string[]): Choice<LaunchOption> {
  if (prompts.length === 0) return { label: vscode.l10n.t("$(pencil) Enter Prompt"), value: "on" };
  const count = prompts.length * agents.length;
  const label = fork
    ? vscode.l10n.t("$(arrow-right) Review the Fork")
    : count > 1
      ? vscode.l10n.t("$(play) Launch {0} Tasks", count)
      : vscode.l10n.t("$(play) Launch");
  const detail = withoutIcons(excerpt(oneLine(prompts.join(" | ")), EXCERPT_LENGTH));
  return { label, detail, value: "on" };
}

/** A fork of the active session; undefined if there is none. */
function forkOfActive({ folder }: LaunchContext): LaunchPlan["fork"] {
  const active = folder.session.session;
  if (!active) return undefined;
  return { title: active.title, request: { sourceSessionID: active.id }, parentSessionID: active.id };
}
