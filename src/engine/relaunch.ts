import { askedLast } from "./asked.ts";
import { hasArrived, isStored } from "./arrival.ts";
import { messageOf, Refusal } from "./errors.ts";
import type { LaunchInput } from "./launcher.ts";
import type { AgentServer, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { isNotice } from "./asked.ts";
import { sentence } from "./sentence.ts";
import type { Message } from "./server-model.ts";
import { isActive, shortID, waitingMessage, type TaskRecord } from "./task.ts";
import { STATUS_WORDS } from "./transitions.ts";
import { answerText, isSteering } from "./turn.ts";

/** The prompt of a continued task, unless another one is given. */
const CARRY_ON = "Continue where you left off.";

/** Launches new tasks in place of ones that failed or were cancelled. */
export class Relaunch {
  /** What is in progress, by the task that it replaces. Equal calls have the same `what`. */
  private readonly running = new Map<Entry, { readonly what: string; readonly next: Promise<Entry> }>();

  constructor(
    private readonly server: AgentServer,
    private readonly launcher: { launch(input: LaunchInput): Promise<Entry> },
    private readonly registry: TaskRegistry,
    private readonly logger: Logger,
  ) {}

  /** Launches a new task with the prompt, agent and model of this one. Concurrent equal calls get the same new task. */
  retry(entry: Entry): Promise<Entry> {
    return this.once(entry, "retry", async (record) => this.launcher.launch(await this.again(record)));
  }

  /**
   * Launches a new task that carries on from the whole conversation of this one. Concurrent equal calls get the
   * same new task.
   * @param prompt added to the message that waited for the end of this task; without either, a plain request to continue
   */
  continue(entry: Entry, prompt?: string): Promise<Entry> {
    return this.once(entry, `continue ${prompt ?? ""}`, async (record) => {
      const waiting = waitingMessage(record);
      const next = await this.launcher.launch(
        await this.onward(record, [waiting, prompt].filter(Boolean).join("\n\n")),
      );
      if (waiting !== undefined) await this.forgetWaiting(entry, next, waiting);
      return next;
    });
  }

  /** A fork that never began may not even have got its conversation, so the source of that is forked again. */
  private async onward(record: TaskRecord, text: string): Promise<LaunchInput> {
    const { id, createdAt, forkedFrom } = record;
    const isOwnAnswer = ({ info }: Message): boolean =>
      info.role === "assistant" && info.created >= createdAt;
    if (forkedFrom === undefined || (await this.server.messages(id)).some(isOwnAnswer))
      return {
        ...sameTask(record),
        prompt: text || CARRY_ON,
        fork: { sourceSessionID: id, carriesOn: true },
      };
    const again = await this.again(record);
    return { ...again, prompt: [again.prompt, text].filter(Boolean).join("\n\n") };
  }

  /**
   * Forgets the message that waited once it has arrived as the prompt of the new task. Waits for the first attempt only:
   * if the server can't be reached, the fork is built again later.
   */
  private async forgetWaiting(entry: Entry, next: Entry, waiting: string): Promise<void> {
    if ((await this.forgetIfSent(entry, next, waiting)) || !isActive(next.record)) return;
    const watching = this.registry.onDidChange(({ id, after }) => {
      if (id !== next.record.id) return;
      if (!after || !isActive(after)) watching.dispose();
      void this.forgetIfSent(entry, next, waiting).then((isSent) => isSent && watching.dispose());
    });
  }

  private async forgetIfSent(entry: Entry, next: Entry, waiting: string): Promise<boolean> {
    try {
      if (!(await next.serial.run(() => isStored(this.server, next.record)))) return false;
      await entry.serial.run(async () => {
        const { record } = entry;
        // The task may have been resumed since, and another message be waiting.
        if (waitingMessage(record) === waiting)
          await this.registry.storeThenShow(entry, { ...record, followUp: undefined });
      });
      return true;
    } catch (error) {
      this.logger.warn(
        `Couldn't store that the message of task ${shortID(entry.record.id)} was sent: ${messageOf(error)}`,
      );
      return false;
    }
  }

  private async once(
    entry: Entry,
    what: string,
    launch: (record: TaskRecord) => Promise<Entry>,
  ): Promise<Entry> {
    const { record } = entry;
    const { id, status } = record;
    if (status !== "error" && status !== "cancelled")
      throw new Refusal(
        "wrong-status",
        sentence(
          "Only failed or cancelled tasks can be retried or continued. Task {0} has the status {1}.",
          shortID(id),
          STATUS_WORDS[status],
        ),
      );
    const running = this.running.get(entry);
    if (running?.what === what) return running.next;
    if (running)
      throw new Refusal(
        "wrong-status",
        sentence("Task {0} is already being retried or continued. Try again in a moment.", shortID(id)),
      );
    const next = launch(record).finally(() => this.running.delete(entry));
    this.running.set(entry, { what, next });
    return next;
  }

  private async again(record: TaskRecord): Promise<LaunchInput> {
    const { id, promptMessageID, forkedFrom, forkOptions } = record;
    const current = await this.server.message(id, promptMessageID);
    // What woke the task is no prompt of its own.
    const message =
      current && isNotice(current)
        ? askedLast((await this.server.messages(id)).filter((one) => !isSteering(one)))
        : current;
    if (!message || !hasArrived(message) || isNotice(message))
      throw new Refusal(
        "session-gone",
        sentence("The prompt of task {0} no longer exists. Launch a new task instead.", shortID(id)),
      );
    const fork = forkedFrom === undefined ? undefined : { sourceSessionID: forkedFrom, ...forkOptions };
    const again = {
      ...sameTask(record),
      prompt: answerText(message),
      files: message.parts.filter((part) => part.type === "file"),
    };
    const end = fork?.upToMessageID ?? record.parentMessageID;
    if (!fork || fork.sourceSessionID !== record.parentSessionID || end === undefined)
      return { ...again, fork };
    if (await this.server.message(fork.sourceSessionID, end)) return { ...again, fork };
    // The user has undone it since, so the conversation is inherited as it is now.
    return { ...again, parentMessageID: undefined, fork: { ...fork, upToMessageID: undefined } };
  }
}

/** What the new task has in common with the one that it replaces. */
function sameTask(record: TaskRecord): Omit<LaunchInput, "prompt"> {
  const { id, description, agent, model, parentSessionID, parentMessageID, launchedBy, batchID } = record;
  return {
    description,
    agent,
    model,
    parentSessionID,
    parentMessageID,
    launchedBy,
    batchID,
    permitted: [agent],
    insteadOf: id,
    isolation: record.worktree ? "worktree" : "folder",
  };
}
