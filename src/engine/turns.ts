import { isOwnText, type PromptSender } from "./arrival.ts";
import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import { ServerFailure, type AgentServer, type Clock, type EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { noteFailedStart, sentPrompt, type RunningTurn, type SentPrompt } from "./running-turn.ts";
import { ABORTED, type AgentError, type ServerEvent } from "./server-model.ts";
import type { TaskEvent } from "./transitions.ts";
import { endOf, failed } from "./turn-end.ts";
import { INTERRUPTED, NEVER_ANSWERED, NEVER_STARTED, NEVER_STORED, promptLost } from "./turn-errors.ts";
import { readTurn, TURN_WINDOW, type Turn } from "./turn.ts";
import { isActive, isQueued, shortID, type TaskRecord } from "./task.ts";

/** The first poll after a connect comes early, so that turns that died with the server are soon detected. */
const FIRST_POLL_MS = 1_000;
/** How long the server may take to store a prompt that it has accepted. */
const STORING_MS = 15_000;
/** How long it may take for a prompt with files, which the server reads first. */
const READING_MS = 60_000;
/** How long the server may take to store or answer a prompt whose sender is gone. */
const LEFT_BEHIND_MS = 10_000;
/** How long after a connect a server that resumes turns by itself may take to do so. */
const RESUMING_MS = 10_000;
/** The server sends a heartbeat every 10 s. If the stream is silent for longer, events may be missing. */
const HEARTBEAT_MS = 12_000;
/** Every running task is polled at least this often, even if events show that it is running. */
const VOUCHED_MS = 60_000;

/**
 * Detects when and how the turns of active tasks end: immediately through events, otherwise by polling. An idle session
 * is only a hint; the state of the last message decides.
 */
export class TurnWatcher implements Disposable {
  /** When the last event was received. */
  private heardAt = 0;
  private timer: Disposable | undefined;
  private connected = false;
  private connectedAt = 0;
  /** When the server was last known to be alive before the connection was lost. */
  private lostAt = 0;

  private readonly server: AgentServer;
  private readonly clock: Clock;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
    private readonly prompts: PromptSender,
    /** Ends a task. Called from within the task's queue. */
    private readonly ending: { end(entry: Entry, event: TaskEvent): Promise<void> },
  ) {
    this.server = ports.server;
    this.clock = ports.clock;
  }

  /** Notes that an event was received, even if it was only a heartbeat. */
  hear(): void {
    this.heardAt = this.clock.now();
  }

  /** Processes an event in the session of a task, which was just heard. */
  accept(entry: Entry, event: ServerEvent): void {
    const { turn } = entry;
    if (!turn) return;
    const now = this.heardAt;
    if (turn.progress.accept(event, now)) this.registry.progressed(entry);

    if (event.type === "session-status") {
      const isIdle = event.status.type === "idle";
      turn.suspicion = undefined;
      if (turn.kind === "working") turn.seenAtWork = isIdle ? 0 : now;
      if (isIdle) this.settle(entry, "hint");
    } else if (event.type === "session-error") {
      turn.lastError = event.error;
      this.settle(entry, "hint");
    } else if (event.type === "part-changed" && event.part.messageID === entry.record.promptMessageID) {
      if (!isOwnText(event.part) || turn.prompt.kind === "interrupted") return;
      // Errors before the prompt was stored, such as for an unreadable file, do not end the turn.
      if (turn.prompt.kind !== "stored") turn.lastError = undefined;
      turn.prompt = { kind: "stored" };
    } else if (
      event.type === "message-changed" &&
      event.info.role === "assistant" &&
      event.info.completed !== undefined
    ) {
      // After an abort, the session becomes idle before its last message is completed.
      if (event.info.finish !== "tools") this.settle(entry, "hint");
    }
  }

  /** Called when the connection is there and the registry up to date. */
  async connect(): Promise<void> {
    this.connected = true;
    this.connectedAt = this.clock.now();
    const active = this.registry.active();
    if (active.length === 0) return;
    await Promise.all(
      active.filter(({ turn }) => turn?.kind === "working").map((entry) => this.rebuildProgress(entry)),
    );
    await this.poll(active);
    this.schedule(FIRST_POLL_MS);
  }

  /** Follows a turn that was running before its session became a task, and may have ended since. */
  follow(entry: Entry): void {
    const rebuilt = entry.turn ? this.rebuildProgress(entry) : Promise.resolve();
    void rebuilt.then(() => this.settle(entry, "hint"));
    this.watch();
  }

  disconnect(): void {
    if (this.connected) this.lostAt = Math.min(this.clock.now(), this.heardAt + HEARTBEAT_MS);
    this.connected = false;
    // Earlier observations prove nothing about a server that was disconnected. If it is replaced, prompts are lost.
    for (const { turn } of this.registry.active()) {
      if (!turn) continue;
      turn.suspicion = undefined;
      if (turn.kind === "working") turn.seenAtWork = undefined;
      if (turn.prompt.kind === "sent") turn.prompt = { ...turn.prompt, isDoubtful: true };
    }
    this.timer?.dispose();
    this.timer = undefined;
  }

  /** Ensures that polling runs while a task is active, and only then. */
  watch(): void {
    if (this.timer && this.registry.active().length > 0) return;
    this.schedule(this.ports.settings().pollInterval);
  }

  dispose(): void {
    this.disconnect();
  }

  private schedule(delay: number): void {
    this.timer?.dispose();
    this.timer = undefined;
    if (!this.connected || this.registry.active().length === 0) return;
    this.timer = this.clock.after(delay, () => {
      this.timer = undefined;
      const active = this.registry.active();
      this.noteStalls(active.filter(({ turn }) => this.isVouchedFor(turn)));
      void this.poll(active.filter((entry) => this.isDue(entry))).finally(() => this.watch());
    });
  }

  /** Whether the task has to be polled. Queued tasks are only polled until their prompt is stored. */
  private isDue({ turn }: Entry): boolean {
    return turn?.kind === "queued" ? turn.prompt.kind !== "stored" : !this.isVouchedFor(turn);
  }

  /** Whether an event showed recently that the task is running, and the stream would have reported its end. */
  private isVouchedFor(turn: RunningTurn | undefined): boolean {
    return this.isWithin(HEARTBEAT_MS, this.heardAt) && this.isWithin(VOUCHED_MS, seenAtWork(turn) ?? 0);
  }

  private isWithin(ms: number, since: number): boolean {
    const age = this.clock.now() - since;
    // It is negative if the clock was set back since then.
    return age >= 0 && age < ms;
  }

  private noteStalls(entries: readonly Entry[]): void {
    const now = this.clock.now();
    for (const entry of entries)
      if (entry.turn?.progress.checkStall(now, this.ports.settings().stallWarning))
        this.registry.progressed(entry);
  }

  private async poll(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const askedAt = this.clock.now();
    const statuses = await this.server.statuses().catch((error: unknown) => {
      this.ports.logger.warn(`Polling failed: ${messageOf(error)}`);
    });
    if (!statuses) return;
    for (const entry of entries) {
      const status = statuses.get(entry.record.id);
      if (entry.turn?.prompt.kind === "interrupted") void entry.turn.prompt.buildAgain();
      else if (status && status.type !== "idle") {
        if (entry.turn) entry.turn.suspicion = undefined;
        // What an event told meanwhile is newer.
        if ((seenAtWork(entry.turn) ?? 0) < askedAt && entry.turn?.progress.noteRetry(status))
          this.registry.progressed(entry);
        this.noteStalls([entry]);
      } else {
        this.settle(entry, "poll");
      }
    }
  }

  /** Reads the state of the turn, and ends the task if it has ended. Combines calls until the read starts. */
  private settle(entry: Entry, source: "hint" | "poll"): void {
    const { turn } = entry;
    if (!this.connected || !turn || turn.isBeingRead) return;
    turn.isBeingRead = true;
    entry.serial
      .run(async () => {
        turn.isBeingRead = false;
        const { record } = entry;
        if (!isActive(record) || entry.turn?.prompt.kind === "interrupted") return;
        const reading = await currentTurn(this.server, record);
        turn.failedRead = undefined;
        const event = await this.interpret(entry, reading, source);
        // If the record has changed in the meantime, it takes precedence.
        if (event && entry.record === record) await this.ending.end(entry, event);
      })
      .catch((error: unknown) => {
        const why = messageOf(error);
        if (error instanceof ServerFailure && error.reason === "not-found")
          this.registry.forget(entry.record.id);
        else if (why !== turn.failedRead)
          this.ports.logger.warn(`Couldn't read task ${shortID(entry.record.id)}: ${why}`);
        turn.failedRead = why;
      });
  }

  private async interpret(entry: Entry, turn: Turn, source: "hint" | "poll"): Promise<TaskEvent | undefined> {
    if (this.mayBeResumed(turn)) return undefined;
    switch (turn.kind) {
      case "open":
        return source === "poll" && this.confirmed(entry, turn.mark) && (await this.isOver(entry, turn))
          ? { ...failed(this.diedAt(entry, turn.at), INTERRUPTED), openMessageID: turn.messageID }
          : undefined;
      case "unanswered":
      case "unseen":
        return this.interpretUnstarted(entry, turn, source);
      default:
        return (await this.isOver(entry, turn)) ? endOf(turn) : undefined;
    }
  }

  /** Whether a server that has just started may still continue the turn. Prompting again would run it twice. */
  private mayBeResumed({ kind }: Turn): boolean {
    const isOver = kind === "completed" || kind === "failed" || kind === "aborted";
    return this.server.resumesTurns && !isOver && this.clock.now() - this.connectedAt < RESUMING_MS;
  }

  /** Interprets a turn without any answer. */
  private async interpretUnstarted(
    entry: Entry,
    turn: Extract<Turn, { readonly kind: "unanswered" | "unseen" }>,
    source: "hint" | "poll",
  ): Promise<TaskEvent | undefined> {
    const { kind } = turn;
    const now = this.clock.now();
    const sent = sentPrompt(entry);
    if (kind === "unanswered") {
      if (entry.turn) entry.turn.prompt = { kind: "stored" };
    } else {
      const outcome = await this.sendAgain(entry);
      if (outcome === "refused")
        return { type: "turn-failed", at: now, error: promptLost(entry.record), neverBegan: true };
      if (outcome === "sent") {
        this.noteIdle(entry);
        if (!sentPrompt(entry)?.isDoubtful) return undefined;
      } else if (sent && mayBeStoredYet(sent, entry.turn?.lastError, now)) return undefined;
    }
    const lastError = entry.turn?.lastError;
    if (lastError) {
      if (!(await this.isOver(entry, turn))) return undefined;
      if (source === "hint" && entry.turn?.prompt.kind !== "stored") {
        // Errors about a file of the prompt are reported before the prompt, whose turn begins nevertheless.
        this.schedule(FIRST_POLL_MS);
        return undefined;
      }
      if (lastError.name === ABORTED) return { type: "cancelled", at: now, neverBegan: kind === "unseen" };
      return { type: "turn-failed", at: now, error: lastError, neverBegan: kind === "unseen" };
    }
    if (kind === "unanswered" && isQueued(entry.record)) return undefined;
    if (source === "hint" || !this.confirmed(entry, kind)) return undefined;
    const suspicion = entry.turn?.suspicion;
    if (entry.turn && turn.kind === "unanswered" && !suspicion?.restarted) {
      entry.turn.suspicion = { mark: kind, since: now, restarted: true };
      const { id, agent, model } = entry.record;
      await this.server
        .prompt(id, { messageID: turn.asked, agent, model, parts: [] })
        .catch((error: unknown) => noteFailedStart(entry, suspicion?.since ?? now, error));
      this.noteIdle(entry, turn.at);
      return undefined;
    }
    const hasHadItsTime = sent && !sent.isDoubtful;
    const since = suspicion?.since ?? now;
    if (!hasHadItsTime && now - since < LEFT_BEHIND_MS) return undefined;
    if (!(await this.isOver(entry, turn))) return undefined;
    const { promptMessageID, status } = entry.record;
    if (turn.kind === "unanswered") {
      const error = turn.asked === promptMessageID ? NEVER_STARTED : NEVER_ANSWERED;
      return failed(this.diedAt(entry, turn.at), error);
    }
    const at = this.diedAt(entry);
    return sent && status !== "resumed"
      ? failed(at, NEVER_STORED)
      : { type: "turn-failed", at, error: promptLost(entry.record), neverBegan: true };
  }

  /** Sends a prompt again that may not have arrived. A follow-up that is refused would be refused each time. */
  private async sendAgain(entry: Entry): Promise<"sent" | "refused" | "nothing"> {
    try {
      return (await this.prompts.sendAgain(entry)) ? "sent" : "nothing";
    } catch (error) {
      const isRefused = error instanceof ServerFailure && error.reason === "refused";
      if (!isRefused || entry.record.status !== "resumed") throw error;
      this.ports.logger.warn(
        `Couldn't send the follow-up of task ${shortID(entry.record.id)}: ${messageOf(error)}`,
      );
      return "refused";
    }
  }

  /**
   * When a turn ended that left no end. If the connection was lost during the turn, it was then, or at the turn's last
   * trace, not when the end was found, which can be days later.
   */
  private diedAt({ record: { startedAt } }: Entry, trace = startedAt): number {
    const now = this.clock.now();
    return this.connectedAt <= startedAt ? now : Math.min(now, Math.max(startedAt, trace, this.lostAt));
  }

  /** A turn that begins only now, or again, has not worked since it should have begun or since its last trace. */
  private noteIdle({ turn, record: { startedAt } }: Entry, trace = startedAt): void {
    if (turn?.kind !== "working") return;
    const now = this.clock.now();
    const { waiting } = turn;
    turn.waiting = { ...waiting, total: Math.max(waiting.total, now - Math.max(startedAt, trace)) };
  }

  private confirmed({ turn }: Entry, mark: string): boolean {
    if (!turn || turn.suspicion?.mark === mark) return true;
    turn.suspicion = { mark, since: this.clock.now(), restarted: false };
    return false;
  }

  /**
   * Whether a turn with this reading has ended. Idle is only conclusive if the messages are the same before and after
   * it is read, since each response may be older than the other.
   */
  private async isOver(entry: Entry, turn: Turn): Promise<boolean> {
    // A complete answer ends the turn, whatever has been written since.
    if (turn.kind === "completed" && seenAtWork(entry.turn) === 0) return true;
    const status = (await this.server.statuses()).get(entry.record.id);
    if (status && status.type !== "idle") return false;
    return (
      turn.kind === "completed" || marksOf(await currentTurn(this.server, entry.record)) === marksOf(turn)
    );
  }

  /** Reads what the turn has done so far, parts of which this process may have missed. */
  private async rebuildProgress(entry: Entry): Promise<void> {
    const { turn, record } = entry;
    const progress = turn?.progress;
    try {
      const messages = await this.server.messages(record.id);
      if (!progress || entry.turn?.progress !== progress) return;
      const prompt = messages.findIndex(({ info }) => info.id === record.promptMessageID);
      // Messages before the prompt were inherited by a fork.
      if (prompt === -1) return;
      const now = this.clock.now();
      for (const { parts } of messages.slice(prompt + 1))
        for (const part of parts) progress.onPart(part, now);
      this.registry.progressed(entry);
    } catch (error) {
      this.ports.logger.warn(`Couldn't read the progress of task ${shortID(record.id)}: ${messageOf(error)}`);
    }
  }
}

/** When an event last showed that the turn is running. 0 if it showed that the session is idle. Undefined if unknown. */
function seenAtWork(turn: RunningTurn | undefined): number | undefined {
  return turn?.kind === "working" ? turn.seenAtWork : undefined;
}

/** Whether the server may still store a prompt that it has accepted. */
function mayBeStoredYet({ prompt, at }: SentPrompt, error: AgentError | undefined, now: number): boolean {
  const hasFiles = (prompt.files ?? []).length > 0;
  // An unreadable file does not prevent a prompt from being stored. Any other error does.
  if (error && !hasFiles) return false;
  return now - at < (hasFiles ? READING_MS : STORING_MS);
}

/** A text that stays the same as long as nothing changes in a turn. */
function marksOf(turn: Turn): string {
  const mark =
    "mark" in turn ? turn.mark : "messageID" in turn ? turn.messageID : "asked" in turn ? turn.asked : "";
  return `${turn.kind} ${mark}`;
}

/** The state of the turn that answers the task's current prompt. */
export async function currentTurn(
  server: AgentServer,
  { id, promptMessageID }: Pick<TaskRecord, "id" | "promptMessageID">,
): Promise<Turn> {
  const messages = await server.messages(id, TURN_WINDOW);
  const isInSight = messages.some(({ info }) => info.id === promptMessageID);
  // The prompt is not in the window if the turn is long, or if it never arrived.
  if (!isInSight && messages.length >= TURN_WINDOW && !(await server.message(id, promptMessageID)))
    return { kind: "unseen" };
  return readTurn(messages, promptMessageID);
}
