import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { modelText } from "../../engine/model-ref.ts";
import { launchesOf, type Subject, subjectOf, type LaunchPlan, joinSections } from "../launch-plan.ts";
import { folderTitle, type Folder } from "../folders/folders.ts";
import { withoutIcons } from "../plain-text.ts";
import { quotedSelection } from "../editor/place.ts";
import { aside, askChoice, type Choice, askChoices, type Heading } from "../quick-input.ts";
import { BACK, type Move, type Step, type Answer } from "../wizard.ts";
import type { LaunchContext } from "./command.ts";
import type { Launching, LaunchOption } from "./launching.ts";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { ModelInfo } from "../../engine/server-model.ts";
import type { ModelRef } from "../../engine/task.ts";

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
    case "isolation":
      return { ...plan, isolation: isIsolated(context, plan) ? "folder" : "worktree" };
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
      description: model ? modelText(model) : usualModel(context),
      value: "model",
    },
    ...(subject ? [subjectChoice(subject, plan.leavesOutSubject === true)] : []),
    ...(context.folder.session.session ? [forked] : []),
    isolationChoice(isIsolated(context, plan)),
    ...(isInEditor ? [] : [write, sections]),
  ];
}

/** Whether the tasks get worktrees of their own. A fork of an isolated task does, too, unless the user decides. */
export function isIsolated({ folder, known }: LaunchContext, { isolation, fork }: LaunchPlan): boolean {
  if (isolation) return isolation === "worktree";
  const source = fork && known.get(fork.request.sourceSessionID);
  return source?.worktree !== undefined || folder.settings.engine().isolation.default === "worktree";
}

function isolationChoice(isOn: boolean): Choice<LaunchOption> {
  return isOn
    ? {
        label: vscode.l10n.t("$(check) Run in a Worktree"),
        description: vscode.l10n.t("on: your files change only when you bring the work back"),
        value: "isolation",
      }
    : {
        label: vscode.l10n.t("$(git-branch) Run in a Worktree"),
        description: vscode.l10n.t("off: the agent works in your folder"),
        value: "isolation",
      };
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

function goOnChoice(plan: LaunchPlan, prompts: readonly string[]): Choice<LaunchOption> {
  if (prompts.length === 0) return { label: vscode.l10n.t("$(pencil) Enter Prompt"), value: "on" };
  const count = launchesOf(plan, prompts).length;
  const label = plan.fork
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
      sentence(
        "OpenCode has no agents that can run tasks. Add one to its configuration, then restart OpenCode.",
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

/** The value of the choice to use the default model. */
const USUAL = "";

/** Asks for a model, or for the usual one: the default from the settings, otherwise the agent's own. */
async function pickModel(
  context: LaunchContext,
  heading: Heading,
  active: ModelRef | undefined,
): Promise<Answer<{ readonly model: ModelRef | undefined }>> {
  const models = context.folder.calls.models();
  const picked = await askChoice<string>({
    ...heading,
    placeholder: vscode.l10n.t("Select a model"),
    choices: models.then((found) => [{ label: usualModel(context), value: USUAL }, ...byProvider(found)]),
    active: modelText(active),
  });
  if (picked === undefined || picked === BACK) return picked;
  return { model: (await models).find(({ ref }) => modelText(ref) === picked)?.ref };
}

/** The text for a task for which no model is chosen. */
function usualModel({ folder }: LaunchContext): string {
  const { defaultModel } = folder.settings.engine();
  return defaultModel
    ? vscode.l10n.t("{0}, from the settings", modelText(defaultModel))
    : vscode.l10n.t("The agent's own model, or the default");
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
