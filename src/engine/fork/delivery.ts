import { isStored, partsOf, type PromptSender } from "../arrival.ts";
import { messageOf, Refusal, textOf } from "../errors.ts";
import { ServerFailure, type EnginePorts } from "../ports.ts";
import type { Entry } from "../registry.ts";
import { sentence } from "../sentence.ts";
import type { PromptFile } from "../server-model.ts";
import { isActive, shortID, taskError, type TaskRecord } from "../task.ts";
import type { TaskEvent } from "../transitions.ts";
import type { ForkBuilder, ForkOpening, ForkRequest, PreparedFork } from "./builder.ts";

/** How often a delivery is begun before a server that is connected but doesn't answer is given up. */
const MAX_ATTEMPTS = 3;

/** How often, and how long after each other in milliseconds, it is tried to keep the prompt of a task that ended: a day. */
const MAX_TRIES = 28_800;
const TRY_AGAIN_MS = 3_000;

/** What is needed to deliver a forked task. */
export interface ForkDeliveryInput {
  readonly request: ForkRequest;
  /** Undefined if an earlier delivery may have left something. */
  readonly opening: ForkOpening | undefined;
  readonly prompt: string;
  readonly files?: readonly PromptFile[] | undefined;
  /** Whether to start the prompt, or only store it for a queued task. */
  readonly startsNow: boolean;
  /** How often this process has begun to deliver it. What that left is replaced, even a stored prompt. */
  readonly attempts?: number;
}

/** What a failed delivery left in the session; `unreachable` if that could not be determined. */
type Left = "prompt" | "nothing" | "unreachable";

/** Fills the sessions of forked tasks and sends their prompts. The tasks exist already, with their IDs. */
export class ForkDelivery {
  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger">,
    private readonly builder: ForkBuilder,
    private readonly prompts: PromptSender,
    /** Ends a task. Must be called from within the task's queue. */
    private readonly ending: { end(entry: Entry, event: TaskEvent): Promise<void> },
  ) {}

  /**
   * Delivers a fork. Never rejects: a failure ends the task, unless the server can't be reached. Holds the task's queue
   * meanwhile; building can be cancelled. Does nothing if the fork is already being built.
   */
  async run(entry: Entry, input: ForkDeliveryInput): Promise<void> {
    if (entry.turn?.prompt.kind === "building") return;
    const abort = new AbortController();
    if (entry.turn) entry.turn.prompt = { kind: "building", abort };
    try {
      await entry.serial.run(() => this.build(entry, input, abort.signal));
    } catch (error) {
      this.ports.logger.warn(`Couldn't continue fork ${shortID(entry.record.id)}: ${messageOf(error)}`);
    } finally {
      endBuilding(entry);
    }
  }

  private async build(entry: Entry, input: ForkDeliveryInput, signal: AbortSignal): Promise<void> {
    const { request, opening, prompt, startsNow, attempts = 0 } = input;
    const { record } = entry;
    if (attempts > 0 && !isActive(record)) return this.keepPrompt(entry, input);
    let prepared: PreparedFork;
    try {
      if (attempts > 0) await this.ports.server.writeHistory(record.id, []);
      else if (!opening && !(await this.clear(record))) return;
      const inCall = record.launchedBy === "agent" ? prompt : undefined;
      prepared = opening?.prepared ?? (await this.builder.prepare(request, inCall, signal));
      if (!opening?.copies && !signal.aborted) await this.builder.write(record, prepared);
      const isStopped = signal.aborted || !isActive(entry.record);
      // From here on the server may be running something that a cancel must abort.
      endBuilding(entry);
      await this.prompts.send(entry, {
        text: input.prompt,
        preamble: prepared.preamble,
        files: input.files,
        noReply: !startsNow || isStopped,
      });
    } catch (error) {
      if (signal.aborted) return await this.keepPrompt(entry, input);
      const left = await this.abandon(entry, input);
      const again = { ...input, opening: undefined, attempts: attempts + 1 };
      if (left !== "unreachable" || !entry.turn || again.attempts === MAX_ATTEMPTS)
        return this.fail(entry, error, left);
      entry.turn.prompt = { kind: "interrupted", buildAgain: () => this.run(entry, again) };
    }
  }

  /** Removes what an interrupted delivery left. False if it was not interrupted: the prompt has or may have arrived. */
  private async clear(record: TaskRecord): Promise<boolean> {
    const { server } = this.ports;
    if ((await isStored(server, record)) !== false) return false;
    await server.writeHistory(record.id, []);
    return true;
  }

  /** Stores the prompt of a task that ended while it was built, if need be once the server can be reached again. */
  private async keepPrompt(entry: Entry, input: ForkDeliveryInput): Promise<void> {
    if ((await this.abandon(entry, input)) === "unreachable") this.keepPromptLater(entry, input, 1);
  }

  private keepPromptLater(entry: Entry, input: ForkDeliveryInput, tries: number): void {
    const { server, clock } = this.ports;
    const { id, promptMessageID } = entry.record;
    clock.after(TRY_AGAIN_MS, () => {
      void entry.serial.run(async () => {
        try {
          const messages = await server.messages(id);
          // Somebody has gone on in that session.
          const isUsed = messages.some(
            ({ info }) => info.role === "user" && info.created > (entry.record.endedAt ?? 0),
          );
          if (isUsed || messages.some(({ info }) => info.id === promptMessageID)) return;
          if ((await this.abandon(entry, input)) !== "unreachable") return;
        } catch (error) {
          if (!(error instanceof ServerFailure && error.reason === "unreachable")) return;
        }
        if (tries < MAX_TRIES) this.keepPromptLater(entry, input, tries + 1);
      });
    });
  }

  /** Removes the half-built conversation and stores the prompt, which a retry needs. */
  private async abandon(entry: Entry, { prompt, files }: ForkDeliveryInput): Promise<Left> {
    const { server, logger } = this.ports;
    const { id, agent, model, promptMessageID: messageID } = entry.record;
    try {
      await server.writeHistory(id, []);
      const parts = partsOf(messageID, [{ text: prompt }]);
      await server.prompt(id, { messageID, agent, model, parts, files, noReply: true });
      return "prompt";
    } catch (error) {
      logger.warn(`Couldn't remove the unfinished fork ${shortID(id)}: ${messageOf(error)}`);
      return error instanceof ServerFailure && error.reason === "unreachable" ? "unreachable" : "nothing";
    }
  }

  private fail(entry: Entry, cause: unknown, left: Left): Promise<void> {
    const reason = /[.!?]$/.test(messageOf(cause)) ? textOf(cause) : sentence("{0}.", textOf(cause));
    const what =
      // A refusal names its own remedy, and retrying would only be refused again.
      cause instanceof Refusal
        ? sentence("Couldn't transfer the conversation: {0}", reason)
        : left === "prompt"
          ? sentence("Couldn't transfer the conversation: {0} Retry it as a new task.", reason)
          : sentence("Couldn't transfer the conversation: {0} Launch a new task instead.", reason);
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
