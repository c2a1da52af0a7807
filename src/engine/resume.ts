import type { Adoption } from "./adoption.ts";
import { watchForStop, type AgentCall, type AgentPermissions } from "./agent-permissions.ts";
import { isStored, type PromptSender } from "./arrival.ts";
import type { BudgetUse } from "./budget-use.ts";
import type { Catalog } from "./catalog.ts";
import { messageOf, Refusal } from "./errors.ts";
import type { Disposable } from "./event.ts";
import { freshID } from "./ids.ts";
import { requirePrompt } from "./launcher.ts";
import type { Notices } from "./notices.ts";
import { ServerFailure, type EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentPrompt } from "./running-turn.ts";
import { sentence } from "./sentence.ts";
import { isRunning } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";
import { shortID, waitingMessage, type Task } from "./task.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";
import { transition } from "./transitions.ts";
import type { TurnWatcher } from "./turns.ts";

/** The first and the longest delay before a waiting message is sent again that couldn't be sent, in milliseconds. */
const FIRST_RETRY_MS = 2_000;
const LAST_RETRY_MS = 60_000;

interface ResumeParts extends Pick<EnginePorts, "server" | "clock" | "random" | "logger"> {
  readonly registry: TaskRegistry;
  readonly subagents: Subagents;
  readonly catalog: Catalog;
  readonly permissions: AgentPermissions;
  readonly adoption: Adoption;
  readonly budget: BudgetUse;
  readonly notices: Notices;
  readonly prompts: PromptSender;
  readonly turns: TurnWatcher;
  readonly worktrees: TaskWorktrees;
}

/** Sends follow-ups to tasks that have completed. */
export class Resume implements Disposable {
  private connected = false;
  /** By task ID. */
  private readonly retries = new Map<string, Disposable>();

  constructor(private readonly parts: ResumeParts) {}

  /**
   * Sends a follow-up to a completed task, and resolves as soon as the server has accepted it. An idle subagent that is
   * not a task is adopted first.
   * @param call the agent's call that asks for this. Repeating the call changes nothing.
   */
  async run(taskID: string, prompt: string, call?: AgentCall): Promise<Task> {
    const { registry, subagents, adoption } = this.parts;
    requirePrompt(prompt);
    const requireGoingOn = call && watchForStop(this.parts, call.sessionID, true);
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
      await (wasMade ? this.deliverAgain(entry, prompt) : this.begin(entry, prompt, call, requireGoingOn));
      return registry.snapshot(entry);
    });
  }

  /** Throws a {@link Refusal} if the task can't be resumed now. */
  requireResumable(entry: Entry): void {
    const at = this.parts.clock.now();
    transition(entry.record, { type: "resume", at, promptMessageID: entry.record.promptMessageID });
    this.parts.budget.requireRoomFor(entry);
  }

  /**
   * Sends the message that waits for the end of a turn, if the task has completed. Never rejects: after a failure that may
   * pass, it tries again ever later; after any other, the message waits until the parent was told of the end, or for the
   * next connect.
   */
  async sendWaiting(entry: Entry, delayMs = FIRST_RETRY_MS): Promise<void> {
    entry.heldBack = undefined;
    try {
      await entry.serial.run(async () => {
        const text = waitingMessage(entry.record);
        const { status, clearedAt } = entry.record;
        if (text !== undefined && status === "completed" && clearedAt === undefined)
          await this.begin(entry, text, "waited");
      });
    } catch (error) {
      const isUntold = entry.record.notice.state === "pending" && !(error instanceof Refusal);
      entry.heldBack = isUntold ? "until-told" : "failed";
      this.parts.logger.warn(
        `Couldn't send a message to task ${shortID(entry.record.id)}: ${messageOf(error)}`,
      );
      if (this.connected && error instanceof ServerFailure && error.isPassing) this.retryIn(entry, delayMs);
    }
  }

  private retryIn(entry: Entry, delayMs: number): void {
    const { id } = entry.record;
    this.retries.get(id)?.dispose();
    const retry = this.parts.clock.after(delayMs, () => {
      this.retries.delete(id);
      // It may have been sent meanwhile, for another reason.
      if (entry.heldBack) void this.sendWaiting(entry, Math.min(2 * delayMs, LAST_RETRY_MS));
    });
    this.retries.set(id, retry);
  }

  /** The connection is lost. The next connect sends the messages that wait. */
  disconnect(): void {
    this.connected = false;
    for (const retry of this.retries.values()) retry.dispose();
    this.retries.clear();
  }

  dispose(): void {
    this.disconnect();
  }

  /** Sends all messages whose task completed while there was no connection. */
  async connect(): Promise<void> {
    this.connected = true;
    const waiting = this.parts.registry.all().filter(({ record }) => waitingMessage(record) !== undefined);
    await Promise.all(waiting.map((entry) => this.sendWaiting(entry)));
  }

  /** Must be called from within the task's queue, like the methods below. */
  private async begin(
    entry: Entry,
    prompt: string,
    by: AgentCall | "waited" | undefined,
    requireGoingOn?: () => void,
  ): Promise<void> {
    const { server, clock, random, registry, catalog, permissions, budget } = this.parts;
    const { notices, prompts, turns, worktrees } = this.parts;
    const call = by === "waited" ? undefined : by;
    const at = clock.now();
    const event = { type: "resume", at, promptMessageID: freshID("msg", at, random) } as const;
    // Throws a refusal before anything has been done.
    transition(entry.record, event);
    budget.requireRoomFor(entry);
    const { id, agent } = entry.record;
    // A worktree can have agents and models of its own, which only the server knows.
    if (!worktrees.of(id)) await catalog.requireStillThere(entry.record, call ? "agent" : "person");
    await worktrees.requireFor(id);
    worktrees.requireSetUp(id);
    const session = await server.session(id);
    if (!session) {
      registry.forget(id);
      throw registry.unknown(id);
    }
    if (call) await permissions.limitToCaller(session, agent, call, worktrees.of(id) !== undefined);
    // Resuming discards the previous end, so its notice must be delivered first.
    await notices.deliverNow(entry);
    const before = entry.record;
    const followUp = by === "waited" ? { text: prompt, messageID: event.promptMessageID } : before.followUp;
    // It can do more work in a worktree that was decided on and not removed yet.
    const worktree = before.worktree && { ...before.worktree, outcome: undefined };
    const resumed = { ...transition(before, event), callID: call?.callID, followUp, worktree };
    try {
      await registry.storeThenShow(entry, {
        ...resumed,
        clearedAt: undefined,
        notice: { state: "none" },
        retrievedAt: undefined,
      });
      requireGoingOn?.();
      await prompts.send(entry, { text: prompt });
    } catch (error) {
      const isRefused = error instanceof ServerFailure && error.reason === "refused";
      const mayBeStored = entry.record === before && !isRefused;
      // Another process may have resumed the task meanwhile.
      const isOwn = entry.record.promptMessageID === event.promptMessageID;
      if (isOwn || mayBeStored) await registry.takeBack(entry, before).catch(() => undefined);
      throw error;
    }
    turns.watch();
  }

  /** Repeats a call whose answer was lost: sends the prompt unless it has arrived. */
  private async deliverAgain(entry: Entry, text: string): Promise<void> {
    const { server, prompts, turns } = this.parts;
    const mayBeLost = entry.record.status === "resumed" && !sentPrompt(entry);
    if (!mayBeLost || (await isStored(server, entry.record)) !== false) return;
    await prompts.send(entry, { text });
    turns.watch();
  }
}
