import { hasArrived, partsOf } from "./arrival.ts";
import { NOTICE_MARK } from "./asked.ts";
import type { BudgetUse } from "./budget-use.ts";
import type { Catalog } from "./catalog.ts";
import type { ConfirmedPrompts } from "./confirmed-prompts.ts";
import { messageOf, UserFacingError } from "./errors.ts";
import { Emitter, logged, type Disposable, type Event } from "./event.ts";
import { finalText } from "./final-text.ts";
import { derivedID } from "./ids.ts";
import { MultiMap } from "./multi-map.ts";
import { noticeDetail, noticeLine, type NoticeFacts } from "./notice-text.ts";
import type { AgentServer, Clock, EnginePorts } from "./ports.ts";
import { endsWait, isDelegated, isWaitingFor, receivedThrough } from "./received-result.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { english, sentence } from "./sentence.ts";
import type { Message, Prompt, ServerEvent } from "./server-model.ts";
import { isActive, isStopped, shortID, waitingMessage, type NoticeState, type TaskRecord } from "./task.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";
import { TURN_WINDOW } from "./turn.ts";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** After a lost connection, notices up to this age are verified again. */
const RECENT_MS = 60_000;
const CONNECTION_LOST = sentence("The connection was lost while the parent session was notified. Try again.");
const UNDONE = sentence(
  "Something is undone in the parent session, and the notification of this task would remove it for good. Restore it or go on there first.",
);
const NOT_STORED = sentence("The server accepted the notification but didn't store it.");

/** The message ID of a notice. It is derived from the end of the task, so that each end has only one notice. */
export function noticeID(record: TaskRecord, endedAt: number, finalMessageID: string | undefined): string {
  return derivedID("msg", endedAt, record.id, record.promptMessageID, finalMessageID ?? "");
}

/** Notifies parents of how their tasks ended: exactly once per end, even after crashes. */
export class Notices implements Disposable {
  private readonly retries = new Map<string, Disposable>();
  /** Tasks whose notice waits until the parent is idle or its call ends, by the parent's session ID. */
  private held = new MultiMap<string, Entry>();

  private readonly server: AgentServer;
  private readonly clock: Clock;
  private connected = false;
  private readonly finds: Emitter<Entry>;
  /** A notice that wakes this task had arrived before this process knew. */
  readonly onDidFindNotice: Event<Entry>;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger">,
    private readonly registry: TaskRegistry,
    private readonly catalog: Catalog,
    private readonly prompts: ConfirmedPrompts,
    private readonly state: { readonly worktrees: TaskWorktrees; readonly budget: BudgetUse },
  ) {
    this.server = ports.server;
    this.clock = ports.clock;
    this.finds = new Emitter(logged(ports.logger, "notices"));
    this.onDidFindNotice = this.finds.event;
  }

  /** The connection is there and the registry up to date. {@link deliverPending} delivers what was left. */
  connect(): void {
    this.connected = true;
  }

  /**
   * Delivers the task's notice if one is pending. A failure is stored in the record and retried later.
   * @param mustStoreFirst whether the record must be stored before the notice is sent. If an end and its notice's ID
   * can be read again from the server's messages after a crash, storing both in one write after the delivery is enough.
   */
  deliver(entry: Entry, { mustStoreFirst = true }: { mustStoreFirst?: boolean } = {}): Promise<void> {
    this.retries.get(entry.record.id)?.dispose();
    this.retries.delete(entry.record.id);
    return entry.serial.run(async () => {
      if (!this.connected || !this.registry.holds(entry)) return;
      try {
        if (mustStoreFirst) await this.registry.flush(entry);
        const { notice } = entry.record;
        if (notice.state !== "pending") return;
        const outcome = await this.notify(entry, notice.messageID);
        if (outcome) await this.registry.showThenStore(entry, { ...entry.record, notice: outcome });
        else if (this.connected) await this.registry.flush(entry);
      } catch (error) {
        this.ports.logger.warn(
          `Couldn't notify the parent of task ${shortID(entry.record.id)}: ${messageOf(error)}`,
        );
        await this.noteFailure(entry, messageOf(error));
      }
    });
  }

  /** Delivers the notice a moment later: together with a task's session, its parent session may be deleted too. */
  deliverSoon(entry: Entry): void {
    if (this.connected) this.deliverIn(entry, FIRST_RETRY_MS);
  }

  /**
   * Delivers a pending notice before a task is resumed, even to a busy parent. Must be called from within the task's
   * queue. Rejects if the notice cannot be delivered, or would remove for good what the user has undone.
   */
  async deliverNow(entry: Entry): Promise<void> {
    await this.registry.flush(entry);
    const { notice } = entry.record;
    if (notice.state !== "pending") return;
    this.held.delete(entry.record.parentSessionID, entry);
    const outcome = await this.notify(entry, notice.messageID, { waits: false }).catch((error: unknown) => {
      // It is no longer held back for anything.
      if (this.connected) this.deliverIn(entry, FIRST_RETRY_MS);
      throw error;
    });
    if (!outcome) throw new UserFacingError(CONNECTION_LOST);
    await this.registry.showThenStore(entry, { ...entry.record, notice: outcome });
  }

  /** Stores and delivers everything that is pending, such as after a reconnect. */
  async deliverPending(): Promise<void> {
    await Promise.all(
      [...this.registry.all(), ...this.registry.lost()].map(async (entry) => {
        if (await this.isMissing(entry)) await this.deliverAgain(entry);
        else if (entry.record.notice.state === "pending" || this.registry.isUnstored(entry))
          await this.deliver(entry);
      }),
    );
  }

  /** Whether a delivered notice was lost because the server died just after accepting it. */
  private async isMissing({ record }: Entry): Promise<boolean> {
    const { notice, parentSessionID } = record;
    if (notice.state !== "delivered" || this.clock.now() - notice.at > RECENT_MS) return false;
    if (!this.connected || !this.registry.session(parentSessionID)) return false;
    try {
      return !hasArrived(await this.server.message(parentSessionID, notice.messageID));
    } catch {
      return false;
    }
  }

  private async deliverAgain(entry: Entry): Promise<void> {
    await entry.serial.run(async () => {
      const { notice } = entry.record;
      if (notice.state !== "delivered") return;
      const { messageID } = notice;
      this.registry.show(entry, { ...entry.record, notice: { state: "pending", messageID, attempts: 0 } });
    });
    await this.deliver(entry);
  }

  /** When a parent becomes idle, or its waiting call ends, delivers the notices that were held back for that. */
  accept(event: ServerEvent): void {
    const parentID =
      event.type === "session-status" && event.status.type === "idle"
        ? event.sessionID
        : event.type === "part-changed" && endsWait(event.part)
          ? event.part.sessionID
          : undefined;
    if (parentID !== undefined) this.release(parentID);
  }

  /** Delivers the notices that were held back for this parent. */
  release(parentID: string): void {
    for (const entry of [...this.held.of(parentID)]) {
      this.held.delete(parentID, entry);
      void this.deliver(entry);
    }
  }

  disconnect(): void {
    this.connected = false;
    for (const retry of this.retries.values()) retry.dispose();
    this.retries.clear();
    this.held = new MultiMap();
  }

  dispose(): void {
    this.disconnect();
    this.finds.dispose();
  }

  /** Sends the notice unless the parent knows already. Undefined if the notice has to wait for the parent. */
  private async notify(
    entry: Entry,
    messageID: string,
    { waits = true }: { waits?: boolean } = {},
  ): Promise<NoticeState | undefined> {
    // Added before checking, because the awaited event may arrive during the check.
    const { parentSessionID } = entry.record;
    if (waits) this.held.add(parentSessionID, entry);
    let isHeld = false;
    try {
      const outcome = await this.notifyNow(entry, messageID, waits);
      isHeld = outcome === undefined;
      return outcome;
    } finally {
      if (waits && !isHeld) this.held.delete(parentSessionID, entry);
    }
  }

  private async notifyNow(entry: Entry, messageID: string, waits: boolean): Promise<NoticeState | undefined> {
    const { record } = entry;
    const parentID = record.parentSessionID;
    const parentTask = this.registry.entry(parentID);
    const wakes = this.wakes(record);
    const parent = this.registry.session(parentID) ?? (await this.server.session(parentID));
    if (!parent)
      return { state: "skipped", reason: english(sentence("The parent session no longer exists.")) };
    if (await this.state.worktrees.isGoneFor(parentID))
      return {
        state: "skipped",
        reason: english(sentence("The worktree of the parent session no longer exists.")),
      };
    // Any message removes for good what a user has undone.
    if (parent.undoneFrom && waits) return undefined;
    if (parent.undoneFrom) throw new UserFacingError(UNDONE);
    // Until its worktree is set up, the parent can't work. The notice is tried again.
    if (wakes) this.state.worktrees.requireSetUp(parentID);

    const [recent, isBusy, result, changes] = await Promise.all([
      this.server.messages(parentID, TURN_WINDOW),
      // A busy session would answer any new message.
      waits && !wakes && this.isBusy(parentID),
      this.result(entry),
      this.state.worktrees.changesAtEnd(record),
    ]);
    const lastPrompt = recent.findLast(({ info }) => info.role === "user");
    const envelope = {
      messageID,
      agent: lastPrompt?.info.agent ?? parent.agent ?? (await this.defaultAgent()),
      model: lastPrompt?.info.model ?? parent.model,
    };
    if (wakes && parentTask) expectWaking(parentTask, messageID);
    const position = recent.findIndex(({ info }) => info.id === messageID);
    if (hasArrived(recent[position] ?? (await this.earlier(recent, record, messageID)))) {
      const answered = recent.slice(position + 1).some(({ info }) => info.role === "assistant");
      if (this.wakes(record) && position !== -1 && !answered)
        await this.server.prompt(parentID, { ...envelope, parts: [] });
      if (parentTask) this.finds.fire(parentTask);
      return { state: "delivered", messageID, at: this.clock.now() };
    }
    // It may have received the result long ago.
    const since = isInSight(recent, record) ? recent : await this.server.messages(parentID);
    const received = receivedThrough(since, record);
    if (received) return received;
    // After an abort, a parent becomes idle before its calls return.
    if (waits && isDelegated(recent, record)) return undefined;
    const isWaiting = isWaitingFor(recent, record);
    if (isBusy || (waits && isWaiting && (await this.isBusy(parentID)))) return undefined;
    // The call may have returned, and the turn ended, since the conversation was read.
    const meanwhile = isWaiting && receivedThrough(await this.server.messages(parentID, TURN_WINDOW), record);
    if (meanwhile) return meanwhile;
    // The parent was stopped, or resumed, in the meantime.
    if (this.wakes(record) !== wakes) return this.notifyNow(entry, messageID, waits);
    const isStored = await this.send(parentID, {
      ...envelope,
      noReply: !wakes,
      parts: this.parts(entry, messageID, { result, changes }),
    });
    return isStored ? { state: "delivered", messageID, at: this.clock.now() } : undefined;
  }

  /**
   * Whether the parent answers the notice. One of a subtask must not make a task continue that was stopped or has no
   * room for another turn.
   */
  private wakes({ launchedBy, parentSessionID }: TaskRecord): boolean {
    if (launchedBy !== "agent") return false;
    const parent = this.registry.entry(parentSessionID);
    if (!parent || isActive(parent.record)) return true;
    return !isStopped(parent.record) && this.state.budget.hasRoomFor(parent);
  }

  private async isBusy(sessionID: string): Promise<boolean> {
    return (await this.server.statuses()).has(sessionID);
  }

  /** Reads the notice if the recent messages do not reach back to when it may have been sent. */
  private async earlier(
    recent: readonly Message[],
    record: TaskRecord,
    messageID: string,
  ): Promise<Message | undefined> {
    return isInSight(recent, record) ? undefined : this.server.message(record.parentSessionID, messageID);
  }

  /** Sends a notice and waits until the server has stored it. False if the connection was lost first. */
  private async send(sessionID: string, prompt: Prompt): Promise<boolean> {
    const outcome = await this.prompts.send(sessionID, prompt);
    if (outcome === "missing") throw new UserFacingError(NOT_STORED);
    return outcome === "stored";
  }

  private parts(
    entry: Entry,
    messageID: string,
    outcome: Pick<NoticeFacts, "result" | "changes">,
  ): Prompt["parts"] {
    const { record } = entry;
    const facts = { ...this.count(entry), ...outcome };
    const metadata = { [NOTICE_MARK]: record.id };
    return partsOf(messageID, [
      { text: noticeLine(record, facts), metadata },
      { text: noticeDetail(record, facts), synthetic: true, metadata },
    ]);
  }

  private async result(entry: Entry): Promise<string> {
    const { status, finalMessageID } = entry.record;
    if (status !== "completed" || finalMessageID === undefined) return "";
    const text = await finalText(this.server, entry.record, entry.answer);
    if (text !== undefined) return text;
    return (await this.server.session(entry.record.id))
      ? "It can no longer be read: it was deleted from the session of the task."
      : "It can no longer be read: the session of the task was deleted.";
  }

  private count(entry: Entry): Omit<NoticeFacts, "result" | "changes"> {
    const { parentSessionID } = entry.record;
    const lost = this.registry.lost().filter(({ record }) => record.parentSessionID === parentSessionID);
    const siblings = [...this.registry.tasksOf(parentSessionID), ...lost];
    return {
      runningCount: siblings.filter((task) => isActive(task.record) || this.isToContinue(task)).length,
      totalCount: countSinceQuiet(
        entry.record,
        siblings.map(({ record }) => record),
      ),
    };
  }

  /** Whether a message waits for the task, which is sent right after the notice. */
  private isToContinue(entry: Entry): boolean {
    const { record } = entry;
    const { status, clearedAt } = record;
    const waits = status === "completed" && clearedAt === undefined && waitingMessage(record) !== undefined;
    return waits && entry.heldBack !== "failed" && this.state.budget.hasRoomFor(entry);
  }

  private async defaultAgent(): Promise<string> {
    const agents = await this.catalog.agents();
    const main = agents.find(({ mode }) => mode !== "subagent");
    return (main ?? (await this.catalog.agent(undefined, "person"))).name;
  }

  private deliverIn(entry: Entry, ms: number): void {
    this.retries.get(entry.record.id)?.dispose();
    this.retries.set(
      entry.record.id,
      this.clock.after(ms, () => void this.deliver(entry)),
    );
  }

  private async noteFailure(entry: Entry, lastError: string): Promise<void> {
    const { notice } = entry.record;
    const attempts = notice.state === "pending" ? notice.attempts + 1 : 1;
    if (this.connected) this.deliverIn(entry, Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), LAST_RETRY_MS));
    if (notice.state !== "pending") return;
    // Kept in memory even if storing fails, which it does while the server is unreachable.
    await this.registry
      .showThenStore(entry, { ...entry.record, notice: { ...notice, attempts, lastError } })
      .catch(() => undefined);
  }
}

/** Notes that the answer to this message, a notice of a subtask, may be a turn of its own. */
export function expectWaking(entry: Entry, messageID: string): void {
  entry.wokenBy = new Set([...(entry.wokenBy ?? []), messageID]);
}

/** How many siblings were launched since the parent last had none running, up to and including this one. */
export function countSinceQuiet(record: TaskRecord, siblings: readonly TaskRecord[]): number {
  let since = launchedAt(record);
  let ordered = siblings;
  // In alternate directions, because thousands of siblings can be in the order of their launch or in its reverse.
  for (let before = Infinity; since < before; ordered = ordered.toReversed()) {
    before = since;
    for (const other of ordered) if (reaches(other, since)) since = launchedAt(other);
  }
  return siblings.filter((other) => launchedAt(other) >= since).length;
}

/** Whether a task was launched before this time and was still running then. */
function reaches(record: TaskRecord, at: number): boolean {
  return launchedAt(record) < at && (isActive(record) || (record.endedAt ?? 0) >= at);
}

/** When the current or last turn was requested. Waiting for a slot counts. */
function launchedAt({ spans = [], resumeCount, adoptedAt, createdAt, startedAt }: TaskRecord): number {
  const isLater = resumeCount > 0 || adoptedAt !== undefined || spans.some(([kind]) => kind === "turn");
  return isLater ? startedAt : createdAt;
}

/** Whether the newest messages of a parent reach back to the end of the task. */
function isInSight(recent: readonly Message[], { endedAt = 0 }: TaskRecord): boolean {
  const [oldest] = recent;
  return recent.length < TURN_WINDOW || !oldest || oldest.info.created < endedAt;
}
