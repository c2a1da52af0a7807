import * as vscode from "vscode";
import type { Task } from "../../engine/task.ts";
import { editorVariables } from "../editor/subjects.ts";
import { type Subject, subjectOf, type LaunchPlan } from "../launch-plan.ts";
import { connectedFolder, folderTitle } from "../folders/folders.ts";
import { humanMessage } from "../messages.ts";
import { withoutIcons } from "../plain-text.ts";
import { aside } from "../quick-input.ts";
import { TreeNode } from "../tree/items.ts";
import { type Answer, BACK, type Move, runWizard, type Step } from "../wizard.ts";
import type { LaunchContext, PromptContext } from "./command.ts";
import { review } from "./fork-review.ts";
import { isIsolated, pickAgent, pickAgents, pickFolder, options, writeInEditor } from "./launch-options.ts";
import { launchFrom, type Launching, launchTask } from "./launching.ts";
import { askPrompt, pickPrompt } from "./ask-prompt.ts";
import { findChild, pickFrom, referenceOf } from "./pick.ts";

/** Launches with the arguments of a keybinding; without arguments, asks. */
export async function launch(context: PromptContext, argument: unknown): Promise<Task | undefined> {
  const isFromMenu = argument === undefined || argument === null || argument instanceof TreeNode;
  return isFromMenu ? launchAsking(context) : launchTask(context, argument);
}

/** Launches from the empty view. Its button disappears with the first task, so the task's row gets the focus. */
export async function launchFromView(context: PromptContext): Promise<void> {
  const task = await launchAsking(context);
  if (task) context.reveal(task.id, { focus: true });
}

/** Forks the conversation of a task or subagent, or of the active session. */
export async function fork(context: PromptContext, argument: unknown): Promise<void> {
  const { folders, known } = context;
  const reference = referenceOf(argument);
  const folder = await connectedFolder(folders, known.folderOf(reference));
  const active = reference === undefined ? await folder.session.ensure() : undefined;
  const title = vscode.l10n.t("Fork Conversation");
  const id = reference ?? (await pickFrom(context, { title }, { sessionID: active }))?.[0];
  if (id === undefined) return;
  const child = id === active ? undefined : findChild(context, id);
  const session = child ? undefined : known.session(id);
  const { model } = child ?? session ?? {};
  const agent = child ? child.agent : (session?.agent ?? (await folder.calls.agents())[0]?.name);
  const draft = {
    title: child?.description ?? session?.title ?? "",
    request: { sourceSessionID: child?.id ?? id },
    parentSessionID: child?.parentSessionID ?? id,
  };
  await forkAsking(
    { ...context, folder: child ? await connectedFolder(folders, folders.of(child.id)) : folder },
    { agents: agent === undefined ? [] : [agent], model, fork: draft },
  );
}

/** Asks for an agent and a prompt, and for other options on request. `subject` is what the prompt is about. */
export async function launchAsking(context: PromptContext, subject?: Subject): Promise<Task | undefined> {
  const plan = { agents: [], subject };
  return run([agent, prompt, review, send], {
    context: await inFolder(context),
    plan,
    prompts: [],
    draft: "launch",
  });
}

/** Asks for the prompt of a fork, then shows what the fork inherits. */
async function forkAsking(
  context: LaunchContext,
  plan: LaunchPlan & Required<Pick<LaunchPlan, "fork">>,
): Promise<Task | undefined> {
  const draft = `fork ${plan.fork?.request.sourceSessionID}`;
  return run([prompt, review, send], { context, plan, prompts: [], draft });
}

/**
 * Asks for the agent for a given prompt, then shows the options.
 * @param isInEditor whether the prompt is already in an editor, so that opening one isn't offered
 */
export async function launchTextAsking(
  context: PromptContext,
  text: string,
  { agents = [], isInEditor = false }: { readonly agents?: readonly string[]; readonly isInEditor?: boolean },
): Promise<Task | undefined> {
  const begin = { context: await inFolder(context), plan: { agents }, prompts: [text], isInEditor };
  return run([agent, options, review, launchFrom()], begin, agents.length > 0 ? 1 : 0);
}

/** Asks for the prompts, unless they are selected in the editor, then for the agents. */
export async function launchBatch(context: PromptContext): Promise<void> {
  const begin = { context: await inFolder(context), plan: { agents: [], splits: true } };
  const prompts = selectedTexts();
  await (prompts
    ? run([agents, launchFrom()], { ...begin, prompts })
    : run([prompt, agents, send], { ...begin, prompts: [], draft: "batch" }));
}

/** The texts of the active editor's selections, if there are several. */
function selectedTexts(): readonly string[] | undefined {
  const editor = vscode.window.activeTextEditor;
  const texts = (editor?.selections ?? [])
    .map((each) => editor?.document.getText(each).trim() ?? "")
    .filter(Boolean);
  return texts.length > 1 ? texts : undefined;
}

async function inFolder(context: PromptContext): Promise<LaunchContext> {
  return { ...context, folder: await connectedFolder(context.folders) };
}

async function run(
  steps: readonly Step<Launching>[],
  begin: Launching,
  first = 0,
): Promise<Task | undefined> {
  return (await runWizard(steps, begin, { first })).state.tasks?.[0];
}

/**
 * Launches the prompts of an editor, after asking for what is still missing.
 * @returns the resulting plan, and whether the prompts were launched
 */
export async function launchFromEditor(
  context: LaunchContext,
  plan: LaunchPlan,
  prompts: readonly string[],
): Promise<{ readonly plan: LaunchPlan; readonly isLaunched: boolean }> {
  const steps = [...(plan.agents.length === 0 ? [agents] : []), review, launchFrom()];
  const { state, end } = await runWizard(steps, { context, plan, prompts, isInEditor: true });
  return { plan: state.plan, isLaunched: end === "finished" };
}

/** Shows the options for the prompts of an editor. */
export async function chooseOptions(
  context: LaunchContext,
  plan: LaunchPlan,
  prompts: readonly string[],
): Promise<{ readonly plan: LaunchPlan; readonly isAgreed: boolean }> {
  const { state, end } = await runWizard([options], { context, plan, prompts, isInEditor: true });
  return { plan: state.plan, isAgreed: end === "finished" };
}

const agent: Step<Launching> = {
  take: async (state, place) => {
    const { context, plan } = state;
    const { folders, folder } = context;
    const { subject } = plan;
    const title = subject
      ? vscode.l10n.t("Launch on {0}: Agent", subject.title)
      : vscode.l10n.t("Launch Task: Agent");
    const other = {
      label: vscode.l10n.t("$(root-folder) Select Folder…"),
      description: vscode.l10n.t("current: {0}", withoutIcons(folder.name)),
      value: otherFolder,
    };
    const separator = { label: "", kind: vscode.QuickPickItemKind.Separator };
    const picked = await pickAgent<Step<Launching>>(
      context,
      { title: folderTitle(folders, folder, title), ...place },
      plan.agents[0],
      folders.all.length > 1 ? [separator, other] : [],
    );
    if (picked === undefined || picked === BACK) return picked;
    if (typeof picked !== "string") return { state, to: picked };
    // A newly picked agent replaces the agents chosen before.
    return {
      state: plan.agents.includes(picked) ? state : { ...state, plan: { ...plan, agents: [picked] } },
    };
  },
};

const otherFolder: Step<Launching> = {
  take: async (state) => {
    const { context, plan } = state;
    const heading = { title: vscode.l10n.t("Launch Task: Folder"), canGoBack: true };
    const picked = await aside(pickFolder(context, heading));
    if (!picked || picked === context.folder) return { state, to: agent };
    context.folders.use(picked);
    const folder = await connectedFolder(context.folders, picked);
    // Another folder doesn't have the conversation.
    return {
      state: { ...state, context: { ...context, folder }, plan: { ...plan, fork: undefined } },
      to: agent,
    };
  },
};

/** Asks for one or more agents for prompts that are already known. */
const agents: Step<Launching> = {
  take: async (state, place) => {
    const { context, plan, prompts } = state;
    const { folders, folder } = context;
    const inTitle = (title: string): string => folderTitle(folders, folder, title);
    const heading = { title: inTitle(vscode.l10n.t("Launch Task: Agent")), ...place };
    const picked = await pickAgents(context, heading, plan.agents, (agentCount) => {
      const count = prompts.length * agentCount;
      return inTitle(
        count === 1 ? vscode.l10n.t("Launch Batch: 1 Task") : vscode.l10n.t("Launch Batch: {0} Tasks", count),
      );
    });
    if (picked === undefined || picked === BACK) return picked;
    return { state: { ...state, plan: { ...plan, agents: picked } } };
  },
};

/** Where a button of the prompt box leads, given the text in the box. */
type Detour = (state: Launching, typed: string) => Promise<Answer<Move<Launching>>>;

const prompt: Step<Launching> = {
  take: async (state, place) => {
    const { context, plan, prompts, problem, draft = "" } = state;
    const { memory, folders, folder } = context;
    if (problem !== undefined && !plan.splits && !prompts.every(isOneLine)) {
      // The input box is single-line.
      void vscode.window.showErrorMessage(problem);
      return writeInEditor(state);
    }
    const toOptions: Detour = async (written) => ({ state: written, to: options });
    const isOn = isIsolated(context, plan);
    const switchWorktree: Detour = async (written) => ({
      state: { ...written, plan: { ...plan, isolation: isOn ? "folder" : "worktree" } },
      to: prompt,
    });
    const isolation = {
      iconPath: new vscode.ThemeIcon(isOn ? "root-folder" : "git-branch"),
      tooltip: isOn ? vscode.l10n.t("Run in the Folder") : vscode.l10n.t("Run in a Worktree"),
      gives: switchWorktree,
    };
    const buttons = [
      {
        iconPath: new vscode.ThemeIcon("settings-gear"),
        tooltip: vscode.l10n.t("Options"),
        gives: toOptions,
      },
      {
        iconPath: new vscode.ThemeIcon("history"),
        tooltip: vscode.l10n.t("Templates and Recent Prompts"),
        gives: insertPrompt,
      },
    ];
    const { title, ...texts } = promptTexts(plan, isOn);
    const given = await askPrompt<Detour>(memory, {
      title: plan.fork ? title : folderTitle(folders, folder, title),
      ...texts,
      ...place,
      draft,
      problem,
      meaning: (text) => tasksIn(promptsIn(plan, text)),
      isEmpty: (text) => promptsIn(plan, text).length === 0,
      editor: writeInEditor,
      buttons: plan.splits ? [isolation] : [isolation, ...buttons],
    });
    if (given === undefined || given === BACK) return given;
    const text = memory.draft(draft);
    const written = { ...state, prompts: promptsIn(plan, text), problem: undefined };
    return typeof given === "string" ? { state: written } : given(written, text);
  },
};

/** Splits the text of the box into prompts; none of them is blank. */
function promptsIn({ splits }: LaunchPlan, text: string): readonly string[] {
  return (splits ? text.split(/\r?\n|\|/).map((each) => each.trim()) : [text]).filter((each) => each.trim());
}

/** Shows how a text is split into prompts; undefined for a single one. */
function tasksIn(prompts: readonly string[]): string | undefined {
  return prompts.length < 2
    ? undefined
    : vscode.l10n.t("{0} tasks: {1}.", prompts.length, prompts.map((each) => `"${each}"`).join(", "));
}

interface PromptTexts {
  readonly title: string;
  readonly hint: string;
  readonly placeholder?: string;
}

function promptTexts(plan: LaunchPlan, isIsolated: boolean): PromptTexts {
  const { hint, ...texts } = usualTexts(plan);
  return { ...texts, hint: isIsolated ? `${hint} ${vscode.l10n.t("Runs in a worktree.")}` : hint };
}

function usualTexts(plan: LaunchPlan): PromptTexts {
  const { fork, splits } = plan;
  const agentNames = plan.agents.join(", ");
  const subject = subjectOf(plan);
  if (splits)
    return {
      title: vscode.l10n.t("Launch Batch: Prompts"),
      hint: vscode.l10n.t("One prompt per task, separated by | (in an editor, by lines of ---)"),
      placeholder: vscode.l10n.t("Example: Review the parser | Review the printer"),
    };
  if (fork)
    return {
      title: vscode.l10n.t("Fork: {0}", fork.title),
      hint: vscode.l10n.t("Enter a prompt. The task inherits this conversation, cut to what fits."),
    };
  if (!subject)
    return {
      title: vscode.l10n.t("Launch Task: Prompt for {0}", agentNames),
      hint: vscode.l10n.t("Enter a prompt. The agent works in the background and sees only this prompt."),
    };
  const hint = vscode.l10n.t("Enter a prompt. It is sent with {0}.", subject.title);
  return {
    title: vscode.l10n.t("Launch on {0}: Prompt for {1}", subject.title, agentNames),
    hint: subject.note === undefined ? hint : `${hint} ${subject.note}`,
  };
}

/** Appends a template or recent prompt to the typed text; replaces the previously inserted one if it is unchanged. */
const insertPrompt: Detour = async (state, typed) => {
  const { context, plan, draft = "", inserted } = state;
  const variables = subjectOf(plan)?.variables ?? editorVariables();
  try {
    const picked = await pickPrompt(context.memory, variables, true);
    if (picked === undefined) return undefined;
    if (picked === BACK) return { state, to: prompt };
    const text = typed === inserted ? picked.text : joined(typed, picked.text);
    const filled = {
      ...state,
      plan: picked.agent === undefined ? plan : { ...plan, agents: [picked.agent] },
      prompts: promptsIn(plan, text),
    };
    // The input box is single-line.
    if (!isOneLine(text)) return { state: filled, to: options };
    context.memory.keepDraft(draft, text);
    return { state: { ...filled, inserted: text }, to: prompt };
  } catch (error) {
    return { state: { ...state, problem: humanMessage(error) }, to: prompt };
  }
};

/** Appends to the typed text, so that nothing typed is lost. */
function joined(typed: string, text: string): string {
  if (typed.trim() === "") return text;
  return `${typed.trimEnd()}${isOneLine(text) ? " " : "\n\n"}${text}`;
}

function isOneLine(text: string): boolean {
  return !/[\r\n]/.test(text.trim());
}

const send = launchFrom(prompt);
