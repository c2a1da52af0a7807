import type { Adoption } from "./adoption.ts";
import { readCallingAgent, type AgentCall } from "./agent-permissions.ts";
import { isStored, type PromptSender } from "./arrival.ts";
import type { BudgetUse } from "./budget-use.ts";
import type { Catalog } from "./catalog.ts";
import { Refusal } from "./errors.ts";
import { freshID } from "./ids.ts";
import { requirePrompt } from "./launcher.ts";
import type { Notices } from "./notices.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentPrompt } from "./running-turn.ts";
import { sentence } from "./sentence.ts";
import { isRunning } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";
import { shortID, type Task, type TaskRecord } from "./task.ts";
import { transition } from "./transitions.ts";
import type { TurnWatcher } from "./turns.ts";

interface ResumeParts extends Pick<EnginePorts, "server" | "clock" | "random"> {
  readonly registry: TaskRegistry;
  readonly subagents: Subagents;
  readonly catalog: Catalog;
  readonly adoption: Adoption;
  readonly budget: BudgetUse;
  readonly notices: Notices;
  readonly prompts: PromptSender;
  readonly turns: TurnWatcher;
}

/** Sends follow-ups to tasks that have completed. */
export class Resume {
  constructor(private readonly parts: ResumeParts) {}

  /**
   * Sends a follow-up to a completed task, and returns as soon as the server took it. A subagent of others that is at
   * rest is adopted first.
   * @param call the agent's call that asks for it: made again, it changes nothing
   */
  async run(taskID: string, prompt: string, call?: AgentCall): Promise<Task> {
    const { registry, subagents, adoption } = this.parts;
    requirePrompt(prompt);
    const subagent = subagents.get(taskID);
    if (subagent && isRunning(subagent))
      throw new Refusal(
        "wrong-status",
        sentence(
          "Subagent {0} is still running. Wait until it has finished before you resume it.",
          shortID(taskID),
        ),
      );
    if (subagent) await adoption.adopt(taskID);
    const entry = registry.find(taskID);
    return entry.serial.run(async () => {
      const wasMade = call?.callID !== undefined && entry.record.callID === call.callID;
      await (wasMade ? this.deliverAgain(entry, prompt) : this.begin(entry, prompt, call));
      return registry.snapshot(entry);
    });
  }

  /** Called with the task's queue held, as everything below. */
  private async begin(entry: Entry, prompt: string, call: AgentCall | undefined): Promise<void> {
    const { server, clock, random, registry, budget, notices, prompts, turns } = this.parts;
    const at = clock.now();
    const event = { type: "resume", at, promptMessageID: freshID("msg", at, random) } as const;
    // Refuses before anything is done.
    transition(entry.record, event);
    budget.requireRoomFor(entry);
    if (!(await server.session(entry.record.id))) {
      const { id } = entry.record;
      registry.forget(id);
      throw registry.unknown(id);
    }
    if (call) await this.limit(entry.record, call);
    // The notice of the end before would otherwise be lost with it.
    await notices.deliverNow(entry);
    const before = entry.record;
    const resumed = { ...transition(before, event), callID: call?.callID };
    await registry.storeThenShow(entry, { ...resumed, notice: { state: "none" }, retrievedAt: undefined });
    try {
      await prompts.send(entry, { text: prompt });
    } catch (error) {
      await registry.showThenStore(entry, before).catch(() => undefined);
      throw error;
    }
    turns.watch();
  }

  /** Whatever a task was allowed so far, an agent that resumes it gets no more than it is allowed itself. */
  private async limit({ id, agent }: TaskRecord, call: AgentCall): Promise<void> {
    const { server, catalog } = this.parts;
    const caller = await readCallingAgent(call, server, catalog);
    caller.requireMayLaunch(agent);
    const limits = caller.limits(agent, await server.permissions(id));
    if (limits.length > 0) await server.restrict(id, limits);
  }

  /** The call was made before, and its answer lost: the prompt is there, or is handed over now. */
  private async deliverAgain(entry: Entry, text: string): Promise<void> {
    const { server, prompts, turns } = this.parts;
    const mayBeLost = entry.record.status === "resumed" && !sentPrompt(entry);
    if (!mayBeLost || (await isStored(server, entry.record)) !== false) return;
    await prompts.send(entry, { text });
    turns.watch();
  }
}
