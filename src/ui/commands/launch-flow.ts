import * as vscode from "vscode";
import type { Task } from "../../engine/task.ts";
import { editorVariables } from "../editor/selection-subject.ts";
import type { Subject } from "../editor/subject.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import { folderTitle } from "../folders/folder-title.ts";
import type { Folder } from "../folders/folder.ts";
import { humanMessage } from "../human-error.ts";
import { withoutLinks } from "../plain-text.ts";
import { quotedSelection } from "../prompt-editor/editor-text.ts";
import { BACK } from "../quick-input.ts";
import { askOptions, type OptionsAnswer } from "./ask-options.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { LaunchContext, PromptContext } from "./command.ts";
import type { ForkPlan } from "./fork-review.ts";
import type { Draft } from "./launch-memory.ts";
import { PartlyLaunched } from "./launch-together.ts";
import { subjectOf, type LaunchPlan } from "../launch-plan.ts";
import { agentStep, launchReviewed, type Asked } from "./launch-reviewed.ts";
import { OTHER_FOLDER, pickAgentOrFolder } from "./pick-agent.ts";
import { pickFolder } from "./pick-folder.ts";
import { pickPrompt } from "./pick-prompt.ts";

/** Asks for an agent and a prompt, and for whatever else the person wants to choose; `subject`: what it is about. */
export async function launchAsking(context: PromptContext, subject?: Subject): Promise<Task | undefined> {
  let folder = await connectedFolder(context.folders);
  let plan: LaunchPlan = { agents: [], subject };
  for (;;) {
    const asking = { ...context, folder };
    const agent = await pickAgentOrFolder(asking, agentStep(asking, subject), plan.agents[0]);
    if (agent === OTHER_FOLDER) {
      folder = await otherFolder(asking);
      continue;
    }
    if (agent === undefined || agent === BACK) return undefined;
    const asked = await askPromptFor(asking, {
      // Several agents that were chosen before are left for one that is chosen now.
      plan: plan.agents.includes(agent) ? plan : { ...plan, agents: [agent] },
      draft: "launch",
      followsAgent: true,
    });
    if (asked.result !== BACK) return asked.result?.[0];
    plan = asked.plan;
  }
}

/** The folder that the person chooses, connected; the present one if they change their mind. */
async function otherFolder({ folders, folder }: LaunchContext): Promise<Folder> {
  const picked = await pickFolder(folders, folder);
  if (!picked) return folder;
  folders.use(picked);
  return connectedFolder(folders, picked);
}

/** Asks for the prompt of a fork, then shows what it inherits. */
export async function forkAsking(context: LaunchContext, plan: ForkPlan): Promise<Task | undefined> {
  const draft = `fork ${plan.fork.request.sourceSessionID}`;
  const { result } = await askPromptFor(context, { plan, draft, followsAgent: false });
  return result === BACK ? undefined : result?.[0];
}

interface PromptStep {
  readonly plan: LaunchPlan;
  readonly draft: string;
  /** Whether the agent was asked for before. */
  readonly followsAgent: boolean;
}

/** Asks for a prompt until it was used, or the person goes elsewhere. */
async function askPromptFor(
  context: LaunchContext,
  { plan: given, draft, followsAgent }: PromptStep,
): Promise<Asked> {
  const { memory } = context;
  const step = followsAgent ? 2 : 1;
  let problem: string | undefined;
  /** What was put into the box last. */
  let inserted: string | undefined;
  for (let plan = given; ;) {
    const answer = await askPrompt(memory, {
      ...promptTexts(context, plan),
      step,
      totalSteps: plan.fork ? step + 1 : step,
      canGoBack: followsAgent,
      draft,
      problem,
      hasOptions: true,
    });
    if (!answer) return { plan, result: undefined };
    let { goes, text } = answer;
    if (goes === "back") return { plan, result: BACK };
    if (goes === "templates") {
      const written = await addWritten(context, plan, text, inserted);
      if (!written) return { plan, result: undefined };
      ({ plan, text, problem } = written);
      if (isOneLine(text)) {
        memory.keepDraft(draft, text);
        if (text !== answer.text) inserted = text;
        continue;
      }
      // The box takes one line only.
      goes = "options";
    }
    const written = { name: draft, text: answer.text };
    const asked = await useText(context, plan, text, goes, step + 1, written);
    if (asked.result !== BACK) return asked;
    ({ plan, problem } = asked);
  }
}

/** A prompt with what was written before, and who is to do it; or why it was not added. */
interface Written {
  readonly plan: LaunchPlan;
  readonly text: string;
  readonly problem?: string | undefined;
}

/** Adds a template or a recent prompt to what was typed, or puts it in the place of the one before. Undefined: the person left. */
async function addWritten(
  { memory }: LaunchContext,
  plan: LaunchPlan,
  typed: string,
  inserted: string | undefined,
): Promise<Written | undefined> {
  const variables = subjectOf(plan)?.variables ?? editorVariables();
  const title = vscode.l10n.t("Launch Task: Templates and Recent Prompts");
  try {
    const picked = await pickPrompt(memory, { title, canGoBack: true }, variables);
    if (!picked) return undefined;
    if (picked === BACK) return { plan, text: typed };
    const text = typed === inserted ? picked.text : joined(typed, picked.text);
    return { plan: picked.agent === undefined ? plan : { ...plan, agents: [picked.agent] }, text };
  } catch (error) {
    return { plan, text: typed, problem: humanMessage(error) };
  }
}

/** What was typed is never lost. */
function joined(typed: string, text: string): string {
  if (typed.trim() === "") return text;
  return `${typed.trimEnd()}${isOneLine(text) ? " " : "\n\n"}${text}`;
}

function isOneLine(text: string): boolean {
  return !/[\r\n]/.test(text.trim());
}

function promptTexts(
  { folders, folder }: LaunchContext,
  plan: LaunchPlan,
): { readonly title: string; readonly hint: string } {
  const { fork } = plan;
  const agents = plan.agents.join(", ");
  const subject = subjectOf(plan);
  if (fork)
    return {
      title: vscode.l10n.t("Fork: {0}", fork.title),
      hint: vscode.l10n.t("What is the task to do? It knows this conversation, cut to what fits."),
    };
  if (!subject)
    return {
      title: folderTitle(folders, folder, vscode.l10n.t("Launch Task: Prompt for {0}", agents)),
      hint: vscode.l10n.t("What is the task to do? It works in the background with this prompt alone."),
    };
  const hint = vscode.l10n.t(
    "What is the task to do? It gets {0} with this prompt.",
    withoutLinks(subject.title),
  );
  return {
    title: folderTitle(
      folders,
      folder,
      vscode.l10n.t("Launch on {0}: Prompt for {1}", subject.title, agents),
    ),
    hint: subject.note === undefined ? hint : `${hint} ${subject.note}`,
  };
}

/** Launches a text, or opens it in an editor; by way of the options, where it goes there. */
async function useText(
  context: LaunchContext,
  plan: LaunchPlan,
  text: string,
  goes: "on" | "options" | "editor",
  step: number,
  draft: Draft,
): Promise<Asked> {
  const prompts = text.trim() === "" ? [] : [text];
  const question = { title: optionsTitle(context), canGoBack: true, plan, prompts, canMove: true };
  const chosen = goes === "options" ? await askOptions(context, question) : { plan, goes };
  if (chosen.goes !== "on") return leaveFor(context, { ...chosen, goes: chosen.goes }, text, draft);
  if (prompts.length === 0) return { plan: chosen.plan, result: BACK };
  try {
    return await launchReviewed(context, chosen.plan, prompts, { step, totalSteps: step }, draft);
  } catch (error) {
    context.logger.error("The task was not launched.", error);
    const { agents } = error instanceof PartlyLaunched ? error : chosen.plan;
    return { plan: { ...chosen.plan, agents }, result: BACK, problem: humanMessage(error) };
  }
}

/** Goes where the person wants to instead of launching a text, which is no draft any more once it is in an editor. */
async function leaveFor(
  { promptEditors, folder, memory }: LaunchContext,
  { plan, goes }: { readonly plan: LaunchPlan; readonly goes: Exclude<OptionsAnswer["goes"], "on"> },
  text: string,
  draft?: Draft,
): Promise<Asked> {
  if (goes === undefined) return { plan, result: undefined };
  if (goes === "back") return { plan, result: BACK };
  const splits = goes === "sections" || plan.splits;
  const target = { ...plan, folder: folder.uri.toString(), splits };
  await promptEditors.open(
    { kind: "launch", plan: target },
    text || (subjectOf(plan) ? "" : quotedSelection()),
  );
  if (draft) memory.dropDraft(draft.name, draft.text);
  return { plan, result: [] };
}

function optionsTitle({ folders, folder }: LaunchContext): string {
  return folderTitle(folders, folder, vscode.l10n.t("Launch Task: Options"));
}

/**
 * Asks who is to do what a text says, and shows what is to be launched.
 * @param canMove whether the text can go on in an editor: it is not in one
 */
export async function launchTextAsking(
  context: PromptContext,
  text: string,
  { agents = [], canMove = false }: { readonly agents?: readonly string[]; readonly canMove?: boolean } = {},
): Promise<Task | undefined> {
  let folder = await connectedFolder(context.folders);
  for (let plan: LaunchPlan = { agents }, isAsked = agents.length > 0; ; isAsked = false) {
    const asking = { ...context, folder };
    const agent = isAsked ? agents[0] : await pickAgentOrFolder(asking, agentStep(asking), plan.agents[0]);
    if (agent === OTHER_FOLDER) {
      folder = await otherFolder(asking);
      continue;
    }
    if (agent === undefined || agent === BACK) return undefined;
    const asked = await confirmText(asking, { ...plan, agents: [agent] }, text, canMove);
    if (asked.result !== BACK) return asked.result?.[0];
    ({ plan } = asked);
  }
}

/** Shows what is to be launched of a text until it was used, or the person goes elsewhere. */
async function confirmText(
  context: LaunchContext,
  given: LaunchPlan,
  text: string,
  canMove: boolean,
): Promise<Asked> {
  const prompts = [text];
  const step = { title: optionsTitle(context), step: 2, totalSteps: 2, canGoBack: true };
  for (let plan = given; ;) {
    const { goes, ...chosen } = await askOptions(context, { ...step, plan, prompts, canMove });
    if (goes !== "on") return leaveFor(context, { ...chosen, goes }, text);
    const asked = await launchReviewed(context, chosen.plan, prompts);
    if (asked.result !== BACK) return asked;
    ({ plan } = asked);
  }
}
