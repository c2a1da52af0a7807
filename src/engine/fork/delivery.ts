import { isStored, partsOf, type PromptSender } from "../arrival.ts";
import { messageOf, Refusal, textOf } from "../errors.ts";
import { Cancellation } from "../event.ts";
import type { EnginePorts } from "../ports.ts";
import type { Entry } from "../registry.ts";
import { sentence } from "../sentence.ts";
import type { PromptFile } from "../server-model.ts";
import { isActive, shortID, taskError, type TaskRecord } from "../task.ts";
import type { TaskEvent } from "../transitions.ts";
import type { ForkBuilder, ForkOpening, ForkRequest, PreparedFork } from "./builder.ts";

/** What a forked task is given. */
export interface ForkDeliveryInput {
  readonly request: ForkRequest;
  /** Undefined: a hand-over was broken off, and what it left is to be replaced. */
  readonly opening: ForkOpening | undefined;
  readonly prompt: string;
  readonly files?: readonly PromptFile[] | undefined;
  /** Whether the prompt is started, or only stored for a task that waits. */
  readonly startsNow: boolean;
}

/** Fills the sessions of forked tasks and gives them their prompts, while their IDs are known already. */
export class ForkDelivery {
  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger">,
    private readonly builder: ForkBuilder,
    private readonly prompts: PromptSender,
    /** Ends a task; called with its queue held. */
    private readonly ending: { end(entry: Entry, event: TaskEvent): Promise<void> },
  ) {}

  /**
   * Never rejects: what fails ends the task. The task's queue is held meanwhile; building can be cancelled. Where it
   * is under way already, that one counts.
   */
  async run(entry: Entry, input: ForkDeliveryInput): Promise<void> {
    if (entry.turn?.prompt.kind === "building") return;
    const cancellation = new Cancellation();
    if (entry.turn) entry.turn.prompt = { kind: "building", cancellation };
    try {
      await entry.serial.run(() => this.build(entry, input, cancellation));
    } catch (error) {
      this.ports.logger.warn(`Couldn't continue fork ${shortID(entry.record.id)}: ${messageOf(error)}`);
    } finally {
      endBuilding(entry);
    }
  }

  private async build(entry: Entry, input: ForkDeliveryInput, { signal }: Cancellation): Promise<void> {
    const { request, opening, prompt, startsNow } = input;
    const { record } = entry;
    let prepared: PreparedFork;
    try {
      if (!opening && !(await this.clear(record))) return;
      prepared = opening?.prepared ?? (await this.builder.prepare(request, prompt, signal));
      if (!opening?.copies && !signal.aborted) await this.builder.write(record, prepared);
      const isStopped = signal.aborted || !isActive(entry.record);
      // From here on something may run that a cancel has to end.
      endBuilding(entry);
      await this.prompts.send(entry, {
        text: input.prompt,
        preamble: prepared.preamble,
        files: input.files,
        noReply: !startsNow || isStopped,
      });
    } catch (error) {
      await this.abandon(entry, input);
      if (!signal.aborted) await this.fail(entry, error);
    }
  }

  /** Removes what was left behind. False: nothing was, as the prompt has arrived after all or may have. */
  private async clear(record: TaskRecord): Promise<boolean> {
    const { server } = this.ports;
    if ((await isStored(server, record)) !== false) return false;
    await server.removeMessages(record.id);
    return true;
  }

  /** Leaves nothing half-built, and keeps the prompt: a retry needs it. */
  private async abandon(entry: Entry, { prompt, files }: ForkDeliveryInput): Promise<void> {
    const { server, logger } = this.ports;
    const { id, agent, model, promptMessageID: messageID } = entry.record;
    try {
      await server.removeMessages(id);
      const parts = partsOf(messageID, [{ text: prompt }]);
      await server.prompt(id, { messageID, agent, model, parts, files, noReply: true });
    } catch (error) {
      logger.warn(`Couldn't remove the unfinished fork ${shortID(id)}: ${messageOf(error)}`);
    }
  }

  private fail(entry: Entry, cause: unknown): Promise<void> {
    const reason = /[.!?]$/.test(messageOf(cause)) ? textOf(cause) : sentence("{0}.", textOf(cause));
    const what =
      // A refusal names its remedy, and a retry would only meet it again.
      cause instanceof Refusal
        ? sentence("Couldn't transfer the conversation: {0}", reason)
        : sentence("Couldn't transfer the conversation: {0} Retry it as a new task.", reason);
    return this.ending.end(entry, {
      type: "turn-failed",
      at: this.ports.clock.now(),
      error: taskError("ForkFailed", what),
    });
  }
}

function endBuilding({ turn }: Entry): void {
  if (turn?.prompt.kind === "building") turn.prompt = { kind: "unknown" };
}
