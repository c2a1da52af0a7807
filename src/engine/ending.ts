import { askedLast } from "./adoption.ts";
import type { BudgetUse } from "./budget-use.ts";
import { messageOf, Refusal, textOf } from "./errors.ts";
import { noticeID, type Notices } from "./notices.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { english, sentence } from "./sentence.ts";
import type { ServerEvent } from "./server-model.ts";
import {
  isActive,
  isStopped,
  shortID,
  taskError,
  type NoticeState,
  type Task,
  type TaskError,
  type TaskRecord,
} from "./task.ts";
import { transition, type TaskEvent } from "./transitions.ts";
import { currentTurn, endOf } from "./turns.ts";
import type { WorkTime } from "./work-time.ts";

/** Why a task ended whose session somebody deleted. */
const SESSION_DELETED = taskError(
  "SessionDeleted",
  sentence("The session of the task was deleted. Launch a new task instead."),
);

/** Who asks: a parent that cancelled a task itself need not be told that it was. */
export type Caller = TaskRecord["launchedBy"];

/** Who ended a turn before its time; a limit does, too. */
type Ender = Caller | "limit";

type EndingPorts = Pick<EnginePorts, "server" | "clock" | "logger" | "settings">;

/** How tasks end: by themselves, by a command, at a limit, or with their session. Then nothing works on for them. */
export class Ending {
  constructor(
    private readonly ports: EndingPorts,
    private readonly registry: TaskRegistry,
    private readonly notices: Notices,
    private readonly work: WorkTime,
    private readonly budget: BudgetUse,
  ) {}

  /**
   * The one way in which a task's turn ends: the record first, then the parent is told. Called with the task's queue
   * held.
   */
  async end(entry: Entry, event: TaskEvent, by?: Ender): Promise<void> {
    const { record } = entry;
    if (event.type === "cancelled" && by === undefined) {
      const { at, finalMessageID } = event;
      const error = this.budget.reachedBy(entry, at);
      // It was aborted at its limit by a process that was cut off before it could store that.
      if (error) return this.end(entry, { type: "turn-failed", at, error, finalMessageID }, "limit");
    }
    const finalMessageID = "finalMessageID" in event ? event.finalMessageID : undefined;
    const ended = transition(record, event);
    const next = this.closed(entry, ended, noticeID(record, event.at, finalMessageID), by);
    const { notice } = next;
    // After a crash, an end with a final message can be read again from the server, so it is stored together with the
    // delivery of its notice. Any other end is stored first.
    const mustStoreFirst =
      notice.state !== "pending" ||
      finalMessageID === undefined ||
      event.type === "cancelled" ||
      by === "limit";
    try {
      if (mustStoreFirst) await this.registry.showThenStore(entry, next);
      else this.registry.show(entry, next);
    } catch (error) {
      // It ended all the same; the notice's delivery stores it first, and tries again.
      this.ports.logger.warn(`Couldn't store the end of task ${shortID(record.id)}: ${messageOf(error)}`);
    }
    this.ports.logger.info(`Task ${shortID(record.id)}: ${record.status} → ${next.status}.`);
    const answer = event.type === "turn-completed" ? event.answer : undefined;
    void this.notices.deliver(entry, { mustStoreFirst, answer });
  }

  /** Ends a task whose session is deleted while it is at work. */
  lose(entry: Entry): void {
    const { record } = entry;
    const event = { type: "turn-failed", at: this.ports.clock.now(), error: SESSION_DELETED } as const;
    // When it was deleted an earlier process may have seen at another time; the notice is the same.
    const messageID = noticeID(record, record.startedAt, SESSION_DELETED.name);
    this.registry.show(entry, this.closed(entry, transition(record, event), messageID));
  }

  /**
   * Ends a task that is at work, and what works below it: model streams and tools stop. A task that finished in the
   * same moment stays finished.
   */
  cancel(entry: Entry, by: Caller): Promise<Task> {
    return this.stopTurn(entry, (at, finalMessageID) => ({ type: "cancelled", at, finalMessageID }), by);
  }

  /** Ends a task that used up a limit as {@link cancel} does, with that error. */
  stopAtLimit(entry: Entry, error: TaskError): Promise<Task> {
    return this.stopTurn(
      entry,
      (at, finalMessageID) => ({ type: "turn-failed", at, error, finalMessageID }),
      "limit",
    );
  }

  /** Nothing goes on working below a session that was stopped. */
  async stopDescendants(sessionID: string): Promise<void> {
    const descendants = this.registry.descendantsOf(sessionID);
    if (descendants.length === 0) return;
    const { server } = this.ports;
    const statuses = await server.statuses();
    const outcomes = await Promise.allSettled(
      descendants.map(async ({ id }) => {
        const entry = this.registry.entry(id);
        // Its parent, cancelled too, is not told.
        if (entry && isActive(entry.record)) await this.cancel(entry, "agent");
        else if (statuses.has(id)) await server.abort(id);
      }),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Ends what runs in the session of a task, without waiting for it. */
  abort({ record }: Entry): void {
    this.ports.server.abort(record.id).catch((error: unknown) => {
      this.ports.logger.warn(`Couldn't stop task ${shortID(record.id)}: ${messageOf(error)}`);
    });
  }

  /**
   * A prompt can be stopped before its turn begins, which then begins all the same, however late. What was asked later in
   * that session is none of the task's.
   */
  stopLateStart(entry: Entry, event: ServerEvent): void {
    if (event.type !== "message-changed" || event.info.role !== "assistant") return;
    const { completed, parentID } = event.info;
    if (completed === undefined && parentID === entry.record.promptMessageID && isStopped(entry.record))
      this.abort(entry);
  }

  /** Stops the turns that began late while nobody watched. */
  async stopLateStarts(): Promise<void> {
    const { server, logger } = this.ports;
    const stopped = this.registry.all().filter(({ record }) => isStopped(record));
    if (stopped.length === 0) return;
    try {
      const statuses = await server.statuses();
      const isLate = async ({ record: { id, promptMessageID } }: Entry): Promise<boolean> =>
        askedLast(await server.messages(id))?.info.id === promptMessageID;
      await Promise.all(
        stopped
          .filter(({ record }) => statuses.has(record.id))
          .map(async (entry) => (await isLate(entry)) && this.abort(entry)),
      );
    } catch (error) {
      logger.warn(`Couldn't read whether a stopped task began late: ${messageOf(error)}`);
    }
  }

  /** Ends what a task works on, and what works below it. A turn that ended in the same moment counts as it ended. */
  private async stopTurn(
    entry: Entry,
    stopped: (at: number, finalMessageID?: string) => TaskEvent,
    by: Ender,
  ): Promise<Task> {
    const { server, clock } = this.ports;
    const wasActive = isActive(entry.record);
    const prompt = entry.turn?.prompt;
    const wasBuilt = prompt?.kind === "building";
    if (wasBuilt) prompt.cancellation.cancel();
    return entry.serial.run(async () => {
      const { record } = entry;
      if (wasActive && !isActive(record)) return this.registry.snapshot(entry);
      // Refuses before anything is done.
      transition(record, stopped(clock.now()));
      // Nothing runs yet of a fork that was being built.
      if (!wasBuilt) await server.abort(record.id);
      const turn = wasBuilt ? ({ kind: "unanswered" } as const) : await currentTurn(server, record);
      if (entry.record !== record) return this.registry.snapshot(entry);
      const at = clock.now();
      const event: TaskEvent =
        turn.kind === "completed"
          ? endOf(turn)
          : stopped(at, "messageID" in turn ? turn.messageID : undefined);
      await this.end(entry, event, by);
      // It may have begun before its end was known, where nothing stops it.
      if (turn.kind === "unseen" || turn.kind === "unanswered") this.abort(entry);
      await this.stopDescendants(record.id).catch((error: unknown) => {
        throw new Refusal(
          "partly-done",
          sentence("Stopped task {0}, but not all of its subtasks: {1}", shortID(record.id), textOf(error)),
        );
      });
      return this.registry.snapshot(entry);
    });
  }

  /** The record of a task that ended, with what is known only now. */
  private closed(entry: Entry, ended: TaskRecord, messageID: string, by?: Ender): TaskRecord {
    const toolCalls = ended.toolCalls + (entry.turn?.progress.snapshot().toolCalls ?? 0);
    const notice = this.noticeFor(ended, messageID, by);
    return { ...ended, notice, toolCalls, worked: this.work.of(entry, ended.endedAt), queued: undefined };
  }

  private noticeFor(ended: TaskRecord, messageID: string, by: Ender | undefined): NoticeState {
    if (by === "agent" && ended.status === "cancelled")
      return { state: "skipped", reason: english(sentence("The parent cancelled the task itself.")) };
    if (ended.launchedBy === "person" && !this.ports.settings().notifyParent)
      return { state: "skipped", reason: english(sentence("Turned off in the settings.")) };
    return { state: "pending", messageID, attempts: 0 };
  }
}
