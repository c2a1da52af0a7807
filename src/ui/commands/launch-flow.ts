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
import type { Step } from "./ask-choice.ts";
import { askOptions } from "./ask-options.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { CommandContext, LaunchContext } from "./command.ts";
import { reviewFork, type ForkPlan } from "./fork-review.ts";
import { confirmCount, launchPlan, PartlyLaunched, subjectOf, type LaunchPlan } from "./launch-plan.ts";
import { OTHER_FOLDER, pickAgent, pickAgentOrFolder, pickAgents } from "./pick-agent.ts";
import { pickFolder } from "./pick-folder.ts";
import { pickPrompt } from "./pick-prompt.ts";

/** Asks for an agent and a prompt, and for whatever else the person wants to choose; `subject`: what it is about. */
export async function launchAsking(context: CommandContext, subject?: Subject): Promise<Task | undefined> {
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

function agentStep({ folders, folder }: LaunchContext, subject?: Subject): Step {
  const title = subject
    ? vscode.l10n.t("Launch on {0}: Agent", subject.title)
    : vscode.l10n.t("Launch Task: Agent");
  return {
    title: folderTitle(folders, folder, title),
    step: 1,
    totalSteps: 2,
  };
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

/** What became of a step: tasks, the way back, or undefined where the person left; and what was chosen meanwhile. */
interface Asked {
  readonly plan: LaunchPlan;
  readonly result: readonly Task[] | typeof BACK | undefined;
}

async function askPromptFor(
  context: LaunchContext,
  { plan, draft, followsAgent }: PromptStep,
): Promise<Asked> {
  const { memory, promptEditors, logger } = context;
  let problem: string | undefined;
  /** What was put into the box last. */
  let inserted: string | undefined;
  for (let current = plan; ;) {
    const step = followsAgent ? 2 : 1;
    const answer = await askPrompt(memory, {
      ...promptTexts(context, current),
      step,
      totalSteps: current.fork ? step + 1 : step,
      canGoBack: followsAgent,
      draft,
      problem,
      hasOptions: true,
    });
    problem = undefined;
    if (!answer) return { plan: current, result: undefined };
    let { goes, text }: { goes: string | undefined; text: string } = answer;
    if (goes === "back") return { plan: current, result: BACK };
    if (goes === "templates") {
      const variables = subjectOf(current)?.variables ?? editorVariables();
      const title = vscode.l10n.t("Launch Task: Templates and Recent Prompts");
      try {
        const picked = await pickPrompt(memory, { title, canGoBack: true }, variables);
        if (!picked) return { plan: current, result: undefined };
        if (picked === BACK) continue;
        if (picked.agent !== undefined) current = { ...current, agents: [picked.agent] };
        text = text === inserted ? picked.text : joined(text, picked.text);
      } catch (error) {
        problem = humanMessage(error);
        continue;
      }
      if (isOneLine(text)) {
        memory.keepDraft(draft, text);
        inserted = text;
        continue;
      }
      // The box takes one line only.
      goes = "options";
    }
    const prompts = text.trim() === "" ? [] : [text];
    if (goes === "options") {
      const title = optionsTitle(context);
      const asked = await askOptions(context, {
        title,
        canGoBack: true,
        plan: current,
        prompts,
        canMove: true,
      });
      ({ plan: current, goes } = asked);
      if (goes === undefined) return { plan: current, result: undefined };
      if (goes === "back" || (goes === "on" && prompts.length === 0)) continue;
    }
    if (goes === "editor" || goes === "sections") {
      const target = {
        ...current,
        folder: context.folder.uri.toString(),
        splits: goes === "sections" || current.splits,
      };
      const content = text || (subjectOf(target) ? "" : quotedSelection());
      await promptEditors.open({ kind: "launch", plan: target }, content);
      memory.dropDraft(draft, answer.text);
      return { plan: current, result: undefined };
    }
    try {
      const asked = await launchReviewed(context, current, prompts, { step: step + 1, totalSteps: step + 1 });
      current = asked.plan;
      if (asked.result === BACK) continue;
      if (asked.result) memory.dropDraft(draft, answer.text);
      return asked;
    } catch (error) {
      logger.error("The task was not launched.", error);
      if (error instanceof PartlyLaunched) current = { ...current, agents: error.agents };
      problem = humanMessage(error);
    }
  }
}

function optionsTitle({ folders, folder }: LaunchContext): string {
  return folderTitle(folders, folder, vscode.l10n.t("Launch Task: Options"));
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

/** What was typed is never lost. */
function joined(typed: string, text: string): string {
  if (typed.trim() === "") return text;
  return `${typed.trimEnd()}${isOneLine(text) ? " " : "\n\n"}${text}`;
}

function isOneLine(text: string): boolean {
  return !/[\r\n]/.test(text.trim());
}

/** Asks what is still open before prompts are launched: agents, what a fork inherits, a great number. */
export async function launchReviewed(
  context: LaunchContext,
  plan: LaunchPlan,
  prompts: readonly string[],
  steps: Omit<Step, "title"> = {},
): Promise<Asked> {
  let current = plan;
  if (current.agents.length === 0) {
    const { title } = agentStep(context);
    const agents = current.splits
      ? await pickAgents(context, { title, ...steps }, [], batchTitle(context, prompts.length))
      : await pickAgent(context, { title, ...steps });
    if (agents === undefined || agents === BACK) return { plan: current, result: agents };
    current = { ...current, agents: typeof agents === "string" ? [agents] : agents };
  }
  if (current.fork) {
    const step = { title: vscode.l10n.t("Fork: {0}", current.fork.title), ...steps, canGoBack: true };
    const reviewed = await reviewFork(context, { ...current, fork: current.fork }, step);
    if (!reviewed) return { plan: current, result: undefined };
    current = reviewed.plan;
    if (reviewed.goes === "back") return { plan: current, result: BACK };
  }
  if (!(await confirmCount(prompts.length * current.agents.length)))
    return { plan: current, result: undefined };
  const tasks = await launchPlan(context, current, prompts);
  const [agent = ""] = current.agents;
  if (!current.fork) context.memory.keepAgent(agent);
  context.memory.keepPrompts(prompts);
  if (tasks[0]) context.reveal(tasks[0].id);
  return { plan: current, result: tasks };
}

/** Says what so many prompts come to with so many agents. */
function batchTitle({ folders, folder }: LaunchContext, promptCount: number): (agentCount: number) => string {
  return (agentCount) => {
    const count = promptCount * agentCount;
    return folderTitle(
      folders,
      folder,
      count === 1 ? vscode.l10n.t("Launch Batch: 1 Task") : vscode.l10n.t("Launch Batch: {0} Tasks", count),
    );
  };
}

/**
 * Asks who is to do what a text says, and shows what is to be launched.
 * @param canMove whether the text can go on in an editor: it is not in one
 */
export async function launchTextAsking(
  context: CommandContext,
  text: string,
  { agents = [], canMove = false }: { readonly agents?: readonly string[]; readonly canMove?: boolean } = {},
): Promise<Task | undefined> {
  let folder = await connectedFolder(context.folders);
  const prompts = [text];
  for (let plan: LaunchPlan = { agents }, isAsked = agents.length > 0; ; isAsked = false) {
    const asking = { ...context, folder };
    const agent = isAsked ? agents[0] : await pickAgentOrFolder(asking, agentStep(asking), plan.agents[0]);
    if (agent === OTHER_FOLDER) {
      folder = await otherFolder(asking);
      continue;
    }
    if (agent === undefined || agent === BACK) return undefined;
    plan = { ...plan, agents: [agent] };
    const title = optionsTitle(asking);
    const options = { title, step: 2, totalSteps: 2, canGoBack: true, prompts, canMove };
    for (let isBack = false; !isBack;) {
      const chosen = await askOptions(asking, { ...options, plan });
      if (chosen.goes === undefined) return undefined;
      ({ plan } = chosen);
      isBack = chosen.goes === "back";
      if (isBack) continue;
      if (chosen.goes === "editor" || chosen.goes === "sections") {
        const target = {
          ...plan,
          folder: folder.uri.toString(),
          splits: chosen.goes === "sections" || plan.splits,
        };
        await context.promptEditors.open({ kind: "launch", plan: target }, text);
        return undefined;
      }
      const asked = await launchReviewed(asking, plan, prompts);
      if (asked.result !== BACK) return asked.result?.[0];
      ({ plan } = asked);
    }
  }
}
