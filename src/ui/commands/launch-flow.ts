import * as vscode from "vscode";
import type { Task } from "../../engine/task.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import { folderTitle } from "../folders/folder-title.ts";
import type { Folder } from "../folders/folder.ts";
import { humanMessage } from "../human-error.ts";
import { quotedSelection } from "../prompt-editor/editor-text.ts";
import { BACK } from "../quick-input.ts";
import type { Step } from "./ask-choice.ts";
import { askOptions } from "./ask-options.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { CommandContext, LaunchContext } from "./command.ts";
import { reviewFork, type ForkPlan } from "./fork-review.ts";
import { confirmCount, launchPlan, PartlyLaunched, type LaunchPlan } from "./launch-plan.ts";
import { OTHER_FOLDER, pickAgent, pickAgentOrFolder, pickAgents } from "./pick-agent.ts";
import { pickFolder } from "./pick-folder.ts";

/** Asks for an agent and a prompt, and for whatever else the person wants to choose. */
export async function launchAsking(context: CommandContext): Promise<Task | undefined> {
  let folder = await connectedFolder(context.folders);
  let plan: LaunchPlan = { agents: [] };
  for (;;) {
    const asking = { ...context, folder };
    const agent = await pickAgentOrFolder(asking, agentStep(asking), plan.agents[0]);
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

function agentStep({ folders, folder }: LaunchContext): Step {
  return {
    title: folderTitle(folders, folder, vscode.l10n.t("Launch Task: Agent")),
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
    let { goes }: { goes: string | undefined } = answer;
    const prompts = answer.text.trim() === "" ? [] : [answer.text];
    if (goes === "back") return { plan: current, result: BACK };
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
      await promptEditors.open({ kind: "launch", plan: target }, answer.text || quotedSelection());
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
  { agents, fork }: LaunchPlan,
): { readonly title: string; readonly hint: string } {
  return fork
    ? {
        title: vscode.l10n.t("Fork: {0}", fork.title),
        hint: vscode.l10n.t("What is the task to do? It knows this conversation, cut to what fits."),
      }
    : {
        title: folderTitle(folders, folder, vscode.l10n.t("Launch Task: Prompt for {0}", agents.join(", "))),
        hint: vscode.l10n.t("What is the task to do? It works in the background with this prompt alone."),
      };
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

/** Asks who is to do what a text says, and shows what is to be launched. */
export async function launchTextAsking(context: CommandContext, text: string): Promise<Task | undefined> {
  let folder = await connectedFolder(context.folders);
  const prompts = [text];
  for (let plan: LaunchPlan = { agents: [] }; ;) {
    const asking = { ...context, folder };
    const agent = await pickAgentOrFolder(asking, agentStep(asking), plan.agents[0]);
    if (agent === OTHER_FOLDER) {
      folder = await otherFolder(asking);
      continue;
    }
    if (agent === undefined || agent === BACK) return undefined;
    plan = { ...plan, agents: [agent] };
    const title = optionsTitle(asking);
    const options = { title, step: 2, totalSteps: 2, canGoBack: true, prompts, canMove: false };
    for (let isBack = false; !isBack;) {
      const chosen = await askOptions(asking, { ...options, plan });
      if (chosen.goes === undefined) return undefined;
      ({ plan } = chosen);
      isBack = chosen.goes === "back";
      if (isBack) continue;
      const asked = await launchReviewed(asking, plan, prompts);
      if (asked.result !== BACK) return asked.result?.[0];
      ({ plan } = asked);
    }
  }
}
