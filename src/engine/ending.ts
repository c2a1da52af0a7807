import { askedLast } from "./asked.ts";
import type { BudgetUse } from "./budget-use.ts";
import { messageOf, Refusal, textOf } from "./errors.ts";
import { noticeID, type Notices } from "./notices.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentPrompt } from "./running-turn.ts";
import { english, sentence } from "./sentence.ts";
import type { ServerEvent } from "./server-model.ts";
import {
  isActive,
  isQueued,
  isStopped,
  shortID,
  taskError,
  waitingMessage,
  type NoticeState,
  type Task,
  type TaskError,
  type TaskRecord,
} from "./task.ts";
import { transition, type TaskEvent } from "./transitions.ts";
import { isSteering, type Turn } from "./turn.ts";
import { endOf } from "./turn-end.ts";
import { currentTurn } from "./turns.ts";
import type { WorkTime } from "./work-time.ts";

/** The error of a task whose session was deleted. */
const SESSION_DELETED = taskError(
  "SessionDeleted",
  sentence("The session of the task was deleted. Launch a new task instead."),
);

/** Who asks. A parent that cancels a task itself is not notified of its end. */
export type Caller = TaskRecord["launchedBy"];

/** Who ended a turn early: `parent` if the task was stopped along with its parent. */
type Ender = Caller | "limit" | "parent";

/** What was found of a turn that was stopped. */
type Stop = Omit<Extract<TaskEvent, { readonly type: "cancelled" }>, "type">;

type EndingPorts = Pick<EnginePorts, "server" | "clock" | "logger" | "settings">;

/** Ends tasks: by themselves, by a command, at a limit, or with their session. Descendants are stopped too. */
export class Ending {
  constructor(
    private readonly ports: EndingPorts,
    private readonly registry: TaskRegistry,
    private readonly notices: Notices,
    private readonly work: WorkTime,
    private readonly budget: BudgetUse,
  ) {}

  /**
   * The only way in which a task's turn ends: stores the record first, then notifies the parent. Must be called from
   * within the task's queue (`entry.serial`).
   */
  async end(entry: Entry, event: TaskEvent, by?: Ender): Promise<void> {
    const { record } = entry;
    if (event.type === "cancelled" && by === undefined) {
      const error = this.budget.reachedBy(entry, event.at);
      // An earlier process aborted the turn at its limit, but crashed before storing that.
      if (error) {
        await this.end(entry, { ...event, type: "turn-failed", error }, "limit");
        void this.stopDescendants(record.id).catch((why: unknown) => this.notStopped(record.id, why));
        return;
      }
    }
    const finalMessageID = "finalMessageID" in event ? event.finalMessageID : undefined;
    const ended = transition(record, event);
    // Without a final message, the end can be long ago; the ID must follow the parent's latest messages nevertheless.
    const noticeAt = finalMessageID === undefined ? this.ports.clock.now() : event.at;
    const next = this.closed(entry, ended, noticeID(record, noticeAt, finalMessageID), by);
    const { notice } = next;
    // After a crash, an end with a final message can be read again from the server, so it is stored together with the
    // delivery of its notice. Any other end is stored first.
    const mustStoreFirst =
      notice.state !== "pending" ||
      finalMessageID === undefined ||
      event.type === "cancelled" ||
      by === "limit";
    if (event.type === "turn-completed")
      entry.answer = { messageID: event.finalMessageID, text: event.answer };
    try {
      if (mustStoreFirst) await this.registry.showThenStore(entry, next);
      else this.registry.show(entry, next);
    } catch (error) {
      // The task has ended anyway. Delivering the notice stores the end first, with retries.
      this.ports.logger.warn(`Couldn't store the end of task ${shortID(record.id)}: ${messageOf(error)}`);
    }
    void this.notices.deliver(entry, { mustStoreFirst }).finally(() => (entry.answer = undefined));
  }

  /** Ends a running task whose session was deleted. */
  lose(entry: Entry): void {
    const { record } = entry;
    const event = { type: "turn-failed", at: this.ports.clock.now(), error: SESSION_DELETED } as const;
    // Derived from the start, so that every process that notices the deletion derives the same notice.
    const messageID = noticeID(record, record.startedAt, SESSION_DELETED.name);
    this.registry.show(entry, this.closed(entry, transition(record, event), messageID));
  }

  /**
   * Ends a running task and its descendants, including model streams and tools. A task that finishes at the same moment
   * stays finished.
   */
  async cancel(entry: Entry, by: Caller | "parent"): Promise<Task> {
    for (;;) {
      const stopping = this.stopTurn(entry, (stop) => ({ type: "cancelled", ...stop }), by);
      await stopping.catch(() => undefined);
      const { status } = entry.record;
      if (status !== "completed" || waitingMessage(entry.record) === undefined) return stopping;
      // It finished, and the message that waited for that is being sent.
      await entry.serial.run(() => Promise.resolve());
      if (!isActive(entry.record)) return stopping;
    }
  }

  /** Ends a task that used up a limit, like {@link cancel} but with this error. */
  stopAtLimit(entry: Entry, error: TaskError): Promise<Task> {
    return this.stopTurn(entry, (stop) => ({ type: "turn-failed", error, ...stop }), "limit");
  }

  /** Stops everything that runs in the descendants of a stopped session. Resolves to the number of those that did. */
  async stopDescendants(sessionID: string): Promise<number> {
    // Broken metadata can make a session its own ancestor; each would wait for the other.
    const above = this.registry.above(sessionID);
    const descendants = this.registry.descendantsOf(sessionID).filter(({ id }) => !above.has(id));
    if (descendants.length === 0) return 0;
    const { server } = this.ports;
    const statuses = await server.statuses();
    const outcomes = await Promise.allSettled(
      descendants.map(async ({ id }) => {
        const entry = this.registry.entry(id);
        if (entry && isActive(entry.record)) await this.cancel(entry, "parent");
        else if (statuses.has(id)) await server.abort(id);
        else return false;
        return true;
      }),
    );
    const stopped = outcomes.filter((outcome) => outcome.status === "fulfilled" && outcome.value).length;
    const failed = outcomes.filter((outcome) => outcome.status === "rejected");
    if (!failed[0]) return stopped;
    const why: unknown = failed[0].reason;
    if (stopped === 0) throw why;
    throw new Refusal(
      "partly-done",
      sentence("Only {0} of {1} subtasks were stopped. {2}", stopped, stopped + failed.length, textOf(why)),
    );
  }

  /** Aborts what runs in the session of a task, without waiting for the result. */
  abort({ record: { id } }: Entry): void {
    this.ports.server.abort(id).catch((error: unknown) => this.notStopped(id, error));
  }

  /**
   * Stops a turn that begins after its prompt was cancelled, however late that is. Turns of later prompts in that
   * session do not belong to the task, and are left alone.
   */
  stopLateStart(entry: Entry, event: ServerEvent): void {
    if (event.type !== "message-changed" || event.info.role !== "assistant") return;
    const { completed, parentID } = event.info;
    const asked = [entry.record.promptMessageID, entry.steeredBy, ...(entry.wokenBy ?? [])];
    if (completed === undefined && asked.includes(parentID) && isStopped(entry.record)) this.abort(entry);
  }

  /** Stops the turns that began after their cancellation, while there was no connection. */
  async stopLateStarts(): Promise<void> {
    const { server, logger } = this.ports;
    const stopped = this.registry.all().filter(({ record }) => isStopped(record));
    if (stopped.length === 0) return;
    try {
      const statuses = await server.statuses();
      const isLate = async ({ record: { id, promptMessageID } }: Entry): Promise<boolean> => {
        const asked = askedLast(await server.messages(id));
        return asked !== undefined && (asked.info.id === promptMessageID || isSteering(asked));
      };
      await Promise.all(
        stopped
          .filter(({ record }) => statuses.has(record.id))
          .map(async (entry) => (await isLate(entry)) && this.abort(entry)),
      );
    } catch (error) {
      logger.warn(`Couldn't read whether a stopped task began late: ${messageOf(error)}`);
    }
  }

  /** Stops the turn of a task, and its descendants. A turn that ended at the same moment keeps its own end. */
  private async stopTurn(entry: Entry, stopped: (stop: Stop) => TaskEvent, by: Ender): Promise<Task> {
    const { server, clock } = this.ports;
    const wasActive = isActive(entry.record);
    const prompt = entry.turn?.prompt;
    const wasBuilt = prompt?.kind === "building";
    if (wasBuilt) prompt.abort.abort();
    return entry.serial.run(async () => {
      const { record } = entry;
      const unbuilt = entry.turn?.prompt;
      if (wasActive && !isActive(record)) return this.registry.snapshot(entry);
      // Throws a refusal before anything has been done.
      transition(record, stopped({ at: clock.now() }));
      // A turn that ended earlier wasn't stopped by the limit. Reading it shows how it ended.
      const isWorking = by === "limit" && !wasBuilt && !isQueued(record);
      if (isWorking && !(await server.statuses()).has(record.id)) return this.registry.snapshot(entry);
      // A fork that was being built has nothing running yet.
      if (!wasBuilt) await server.abort(record.id);
      const turn: Turn = wasBuilt ? { kind: "unseen" } : await this.stoppedTurn(record);
      if (entry.record !== record) return this.registry.snapshot(entry);
      const at = clock.now();
      const event: TaskEvent =
        turn.kind === "completed"
          ? endOf(turn)
          : stopped({
              at,
              finalMessageID: "messageID" in turn ? turn.messageID : undefined,
              // One that the server has accepted is stored soon.
              neverBegan: turn.kind === "unseen" && sentPrompt(entry)?.isDoubtful !== false,
            });
      await this.cancelQueued(record.id);
      if (entry.record === record) await this.end(entry, event, by);
      // Only stores the prompt by now, which a retry needs.
      if (unbuilt?.kind === "interrupted") void unbuilt.buildAgain();
      // A turn may have begun before the end was stored, when `stopLateStart` did not stop it yet.
      const mayBeWoken = (entry.wokenBy?.size ?? 0) > 0;
      if (turn.kind === "unseen" || turn.kind === "unanswered" || mayBeWoken) this.abort(entry);
      await this.stopDescendants(record.id).catch((error: unknown) => {
        throw new Refusal(
          "partly-done",
          sentence("Stopped task {0}, but not all of its subtasks: {1}", shortID(record.id), textOf(error)),
        );
      });
      return this.registry.snapshot(entry);
    });
  }

  /** The turn of a task that was just aborted. If it can't be read, how it ended is found later. */
  private async stoppedTurn(record: TaskRecord): Promise<Turn> {
    try {
      return await currentTurn(this.ports.server, record);
    } catch (error) {
      await this.cancelQueued(record.id);
      await this.stopDescendants(record.id).catch((why: unknown) => this.notStopped(record.id, why));
      throw error;
    }
  }

  private notStopped(sessionID: string, error: unknown): void {
    this.ports.logger.warn(`Couldn't stop task ${shortID(sessionID)}: ${messageOf(error)}`);
  }

  /** Its queued descendants would get the slot of a task that ends. Those that can't be cancelled are tried again. */
  private async cancelQueued(sessionID: string): Promise<void> {
    const above = this.registry.above(sessionID);
    const queued = this.registry
      .descendantsOf(sessionID)
      .filter(({ id }) => !above.has(id))
      .flatMap(({ id }) => this.registry.entry(id) ?? [])
      .filter(({ record }) => isQueued(record));
    await Promise.allSettled(queued.map((entry) => this.cancel(entry, "parent")));
  }

  /** The record of an ended task, completed with its notice, tool calls and working time. */
  private closed(entry: Entry, ended: TaskRecord, messageID: string, by?: Ender): TaskRecord {
    const toolCalls = ended.toolCalls + (entry.turn?.progress.snapshot().toolCalls ?? 0);
    const notice = this.noticeFor(ended, messageID, by);
    const worked = this.work.of(entry, ended.endedAt);
    return { ...ended, notice, toolCalls, worked, queued: undefined };
  }

  private noticeFor(ended: TaskRecord, messageID: string, by: Ender | undefined): NoticeState {
    if (by === "parent" && ended.status === "cancelled")
      return { state: "skipped", reason: english(sentence("The parent was stopped too.")) };
    if (by === "agent" && ended.status === "cancelled")
      return { state: "skipped", reason: english(sentence("The parent cancelled the task itself.")) };
    if (ended.launchedBy === "person" && !this.ports.settings().notifyParent)
      return { state: "skipped", reason: english(sentence("Turned off in the settings.")) };
    return { state: "pending", messageID, attempts: 0 };
  }
}
