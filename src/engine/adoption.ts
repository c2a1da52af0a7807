import { askedLast } from "./asked.ts";
import type { BudgetUse } from "./budget-use.ts";
import { Refusal } from "./errors.ts";
import { freshID } from "./ids.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Message, UserMessageInfo } from "./server-model.ts";
import { sentence } from "./sentence.ts";
import { Serial } from "./serial.ts";
import { isRunning, type Subagent } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";
import { shortID, type TaskRecord } from "./task.ts";
import { transition, type TaskEvent } from "./transitions.ts";
import { readTurn } from "./turn.ts";
import { INTERRUPTED } from "./turn-errors.ts";
import { endOf } from "./turn-end.ts";
import type { TurnWatcher } from "./turns.ts";

type AdoptionPorts = Pick<EnginePorts, "server" | "clock" | "random">;

/** Turns subagents that were not launched as tasks into tasks, on request of a user. */
export class Adoption {
  private readonly serial = new Serial();

  constructor(
    private readonly ports: AdoptionPorts,
    private readonly registry: TaskRegistry,
    private readonly subagents: Subagents,
    private readonly budget: BudgetUse,
    private readonly turns: TurnWatcher,
  ) {}

  /**
   * Gives a subagent the record that makes it a task: running, or ended as its conversation says. A session that is a
   * task already is returned unchanged. Rejects with a {@link Refusal} if there is no such subagent, or it has no
   * prompt yet.
   */
  adopt(sessionID: string): Promise<Entry> {
    // One at a time: of two concurrent calls, the second finds the task that the first has made.
    return this.serial.run(async () => {
      const known = this.registry.entry(sessionID);
      const subagent = this.subagents.get(sessionID);
      if (subagent && isRunning(subagent)) this.budget.requireRoomToAdopt(subagent);
      if (known) return known;
      const entry = await this.makeTask(sessionID, subagent);
      this.turns.follow(entry);
      return entry;
    });
  }

  private async makeTask(sessionID: string, subagent: Subagent | undefined): Promise<Entry> {
    const { server } = this.ports;
    if (!subagent) throw refusal(sessionID, this.registry, this.subagents);
    const isWorking = async (): Promise<boolean> => (await server.statuses()).has(sessionID);
    let isBusy: boolean;
    let messages: readonly Message[];
    do {
      // The statuses are read first: a turn that ends in between counts as running, and following it detects the end.
      isBusy = await isWorking();
      messages = await server.messages(sessionID);
      // One that began in between is read again: it would look as if it had been interrupted.
    } while (!isBusy && (await isWorking()));
    const record = recordOf(subagent, messages, isBusy, this.ports);
    const stored = await server.saveRecord(record);
    const entry = stored && this.registry.applySession(stored);
    if (!entry) throw this.subagents.unknown(sessionID);
    return entry;
  }
}

function recordOf(
  subagent: Subagent,
  messages: readonly Message[],
  isBusy: boolean,
  { clock, random }: AdoptionPorts,
): TaskRecord {
  const { id, description, parentSessionID, model, createdAt } = subagent;
  const now = clock.now();
  const prompt = askedLast(messages);
  if (!prompt)
    throw new Refusal(
      "wrong-status",
      sentence("Subagent {0} has no prompt yet. Adopt it when it is running.", shortID(id)),
    );
  const earlier = isBusy ? messages.slice(0, messages.indexOf(prompt)) : messages;
  const { agent, created } = prompt.info;
  const working: TaskRecord = {
    id,
    revision: 1,
    description,
    agent: subagent.agent ?? agent,
    model: model ?? prompt.info.model,
    parentSessionID,
    launchedBy: "person",
    adoptedAt: now,
    batchID: freshID("bat", now, random),
    isForked: false,
    resumeCount: 0,
    status: "running",
    toolCalls: countToolCalls(earlier),
    promptMessageID: prompt.info.id,
    createdAt,
    startedAt: created,
    notice: { state: "none" },
  };
  if (isBusy) return working;
  const ended = transition(working, endOfTurn(subagent, messages, prompt.info));
  return {
    ...ended,
    worked: Math.max(0, (ended.endedAt ?? now) - created),
    notice: { state: "skipped", reason: "It had ended before it was adopted." },
  };
}

/** How the last turn of an idle session ended. One that left no end did so when the session was last updated. */
function endOfTurn(
  { error, endedAt = 0 }: Subagent,
  messages: readonly Message[],
  { id, created }: UserMessageInfo,
): TaskEvent {
  const turn = readTurn(messages, id);
  switch (turn.kind) {
    case "unseen":
    case "unanswered":
    case "open":
      return {
        type: "turn-failed",
        at: Math.max(created, endedAt),
        error: error ?? INTERRUPTED,
        ...(turn.kind === "open" && { openMessageID: turn.messageID }),
      };
    default:
      return endOf(turn);
  }
}

function countToolCalls(messages: readonly Message[]): number {
  return messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "tool").length;
}

function refusal(sessionID: string, registry: TaskRegistry, subagents: Subagents): Refusal {
  const session = registry.session(sessionID);
  if (session?.task.kind === "unreadable")
    return new Refusal(
      "unavailable",
      sentence(
        "Can't adopt session {0} because it already has a task record. {1}",
        shortID(sessionID),
        session.task.reason,
      ),
    );
  if (session && session.parentID === undefined)
    return new Refusal(
      "unknown-session",
      sentence(
        "Can't adopt session {0} because it has no parent session. Only subagents can be adopted.",
        shortID(sessionID),
      ),
    );
  return subagents.unknown(sessionID);
}
