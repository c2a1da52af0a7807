import type { AgentCall, AgentPermissions } from "./agent-permissions.ts";
import { hasArrived, partsOf } from "./arrival.ts";
import type { ConfirmedPrompts } from "./confirmed-prompts.ts";
import { invalidArgument, Refusal } from "./errors.ts";
import { derivedID, freshID } from "./ids.ts";
import { requirePrompt } from "./launcher.ts";
import { ServerFailure, type EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Resume } from "./resume.ts";
import { sentPrompt } from "./running-turn.ts";
import { sentence } from "./sentence.ts";
import { isActive, isQueued, shortID, waitingMessage, type Task, type TaskRecord } from "./task.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";
import { STATUS_WORDS } from "./transitions.ts";
import { STEERING_MARK } from "./turn.ts";
import { utf8Length } from "./utf8.ts";

/** How long a message that waits may be, in bytes of JSON: it is stored in the task's record. */
const MAX_WAITING_BYTES = 1_500;

/** Where a message to a task goes. */
export interface SteerOptions {
  /** Waits until the turn has ended, and is then sent as a follow-up. */
  readonly after?: boolean | undefined;
  /** The agent's call that sends it. Repeating the call changes nothing. */
  readonly call?: AgentCall | undefined;
}

interface SteeringParts extends Pick<EnginePorts, "server" | "clock" | "random"> {
  readonly registry: TaskRegistry;
  readonly permissions: AgentPermissions;
  readonly confirmed: ConfirmedPrompts;
  readonly resume: Resume;
  readonly worktrees: TaskWorktrees;
}

/**
 * Sends messages to running tasks. The message and the end of the turn are decided in the task's queue, one after the
 * other: either the turn includes the answer to the message, or the message is refused.
 */
export class Steering {
  constructor(private readonly parts: SteeringParts) {}

  /**
   * Sends a message to a running task, which reads it at its next step. Resolves once the server has stored it. The
   * task keeps its status, and is not counted as resumed.
   */
  async steer(taskID: string, text: string, { after = false, call }: SteerOptions = {}): Promise<Task> {
    const { registry, resume } = this.parts;
    requirePrompt(text);
    const entry = registry.find(taskID);
    // The task's queue is held while its conversation is built.
    const prompt = entry.turn?.prompt.kind;
    if (!after && (prompt === "building" || prompt === "interrupted")) throw notStarted(entry.record);
    await entry.serial.run(() => (after ? this.keep(entry, text) : this.send(entry, text, call)));
    if (after) await resume.sendWaiting(entry);
    return registry.snapshot(entry);
  }

  /** Takes back the message that waits for the end of a turn. Resolves to its text. */
  withdraw(taskID: string): Promise<string> {
    const { registry } = this.parts;
    const entry = registry.find(taskID);
    return entry.serial.run(async () => {
      const text = waitingMessage(entry.record);
      if (text === undefined)
        throw new Refusal(
          "wrong-status",
          sentence("No message is waiting for task {0} to finish. It may have been sent.", shortID(taskID)),
        );
      await registry.storeThenShow(entry, { ...entry.record, followUp: undefined });
      return text;
    });
  }

  /** Must be called from within the task's queue, like the method below. */
  private async send(entry: Entry, text: string, call: AgentCall | undefined): Promise<void> {
    const { server, clock, random, permissions, confirmed, worktrees } = this.parts;
    const { record } = entry;
    const { id, agent, model, startedAt } = record;
    const isRepeatable = call?.callID !== undefined;
    const messageID = isRepeatable
      ? derivedID("msg", startedAt, id, call.callID)
      : freshID("msg", clock.now(), random);
    if (isRepeatable && hasArrived(await server.message(id, messageID))) return;
    if (!isActive(record)) throw notRunning(record);
    if (isQueued(record)) throw notStarted(record);
    await worktrees.requireFor(id);
    if (call) await permissions.requireNoMoreThanCaller(record, call);
    entry.steeredBy = messageID;
    const parts = partsOf(messageID, [{ text, metadata: { [STEERING_MARK]: true } }]);
    const arrival = await confirmed.send(id, { messageID, agent, model, parts });
    if (arrival !== "stored") throw notStored(arrival);
    // An earlier error does not end a turn that continues with this message.
    if (entry.turn) entry.turn.lastError = undefined;
  }

  /** Keeps a message until the turn has ended. It is added to one that waits already. */
  private async keep(entry: Entry, text: string): Promise<void> {
    const { record } = entry;
    if (!isActive(record) && record.status !== "completed") throw notRunning(record);
    // Sending it again, should it get lost, takes its text from the record.
    if (record.followUp?.messageID !== undefined && sentPrompt(entry))
      throw new Refusal(
        "wrong-status",
        sentence("The message that waited is being sent. Try again in a moment."),
      );
    const before = waitingMessage(record);
    const all = before === undefined ? text : `${before}\n\n${text}`;
    if (utf8Length(JSON.stringify(all)) > MAX_WAITING_BYTES)
      throw invalidArgument(
        sentence("The message is too long to wait for the task. Shorten it, or send it now."),
      );
    await this.parts.registry.storeThenShow(entry, { ...record, followUp: { text: all } });
  }
}

function notRunning({ id, status }: TaskRecord): Refusal {
  return new Refusal(
    "wrong-status",
    status === "completed"
      ? sentence("Task {0} has completed. Resume it with your message instead.", shortID(id))
      : sentence(
          "Messages can only be sent to running tasks. Task {0} has the status {1}; continue it as a new task.",
          shortID(id),
          STATUS_WORDS[status],
        ),
  );
}

function notStarted({ id }: TaskRecord): Refusal {
  return new Refusal(
    "wrong-status",
    sentence("Task {0} hasn't started yet. Send the message when it is running.", shortID(id)),
  );
}

function notStored(arrival: "missing" | "lost"): ServerFailure {
  return arrival === "missing"
    ? new ServerFailure(
        "prompt",
        "unexpected-answer",
        sentence("The server accepted the message but didn't store it. Try again."),
      )
    : new ServerFailure(
        "prompt",
        "unreachable",
        sentence(
          "The connection was lost while the message was sent. Check the task's output before you send it again.",
        ),
      );
}
