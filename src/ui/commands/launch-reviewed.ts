import * as vscode from "vscode";
import type { Task } from "../../engine/task.ts";
import type { Subject } from "../editor/subject.ts";
import { folderTitle } from "../folders/folder-title.ts";
import { BACK, type Step } from "../quick-input.ts";
import type { LaunchContext } from "./command.ts";
import { reviewFork } from "./fork-review.ts";
import type { Draft } from "./launch-memory.ts";
import { confirmCount, launchPlan } from "./launch-together.ts";
import type { LaunchPlan } from "../launch-plan.ts";
import { pickAgent, pickAgents } from "./pick-agent.ts";

/** What became of a question about a launch, and what was chosen meanwhile. */
export interface Asked {
  readonly plan: LaunchPlan;
  /** What was launched, nothing where the text is in an editor now; the way back; or undefined where the person left. */
  readonly result: readonly Task[] | typeof BACK | undefined;
  /** What went wrong, for people, where they are to be asked again. */
  readonly problem?: string | undefined;
}

/**
 * Asks what is still open before prompts are launched: agents, what a fork inherits, a great number.
 * @param draft where the prompts were written
 */
export async function launchReviewed(
  context: LaunchContext,
  plan: LaunchPlan,
  prompts: readonly string[],
  steps: Omit<Step, "title"> = {},
  draft?: Draft,
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
  const launch = (): Promise<readonly Task[]> => launchPlan(context, current, prompts);
  const tasks = await (draft ? context.memory.send(draft, launch) : launch());
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

/** How an agent is asked for. */
export function agentStep({ folders, folder }: LaunchContext, subject?: Subject): Step {
  const title = subject
    ? vscode.l10n.t("Launch on {0}: Agent", subject.title)
    : vscode.l10n.t("Launch Task: Agent");
  return {
    title: folderTitle(folders, folder, title),
    step: 1,
    totalSteps: 2,
  };
}
