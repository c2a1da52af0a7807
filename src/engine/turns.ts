import { isOwnText, type HandOver, type Unstored } from "./arrival.ts";
import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import { ServerFailure, type AgentServer, type Clock, type EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentence } from "./sentence.ts";
import type { AgentError, ServerEvent, SessionStatus } from "./server-model.ts";
import type { TaskEvent } from "./transitions.ts";
import { readTurn, TURN_WINDOW, type EndedTurn, type Turn } from "./turn.ts";
import {
  INTERRUPTED_ERROR,
  isActive,
  isQueued,
  shortID,
  taskError,
  type TaskError,
  type TaskRecord,
} from "./task.ts";

/** After a (re)connect the first poll comes early: what died with the server should not look alive for long. */
const FIRST_POLL_MS = 1_000;
/** How long the server may take to store a prompt that it took. */
const STORING_MS = 15_000;
/** How long it may take where files go with the prompt: it reads them first. */
const READING_MS = 60_000;
/** How long the server may take for what is left of a prompt whose sender is gone: to store it, or to begin the answer. */
const LEFT_BEHIND_MS = 10_000;
/** The server sends a heartbeat every 10 s: on a stream that is silent for longer, events may be missing. */
const HEARTBEAT_MS = 12_000;
/** A task is asked for at least this often, however sure it seems that it is at work. */
const VOUCHED_MS = 60_000;

/** Why a turn ended that was cut off with its server. */
export const INTERRUPTED = taskError(
  INTERRUPTED_ERROR,
  sentence("The server stopped while the task was at work. Retry it as a new task."),
);

const NEVER_STARTED = taskError(
  "NeverStarted",
  sentence("The task was created but its prompt was never started. Launch it again as a new task."),
);

/** Why a turn never began whose prompt nobody knows any more. */
function promptLost({ status, isForked }: TaskRecord): TaskError {
  return taskError(
    "PromptLost",
    status === "resumed"
      ? sentence(
          "The follow-up was lost before the server had stored it. Fork the task to carry on from its conversation.",
        )
      : isForked
        ? sentence(
            "The window was closed before the task got its conversation and its prompt. Launch it again as a new task.",
          )
        : sentence(
            "The prompt was lost before the server had stored it. Launch the task again as a new task.",
          ),
  );
}

/** What was seen of a turn that looks dead. Seen twice, a poll apart, without any change, it is. */
interface Suspicion {
  readonly mark: string;
  /** When it was seen first, in milliseconds since 1970. */
  readonly since: number;
  readonly restarted: boolean;
}

/**
 * Finds out when the turns of active tasks have ended, and how: at once by events, otherwise by polling. An idle
 * session is only a hint; what counts is how the last message stands.
 */
export class TurnWatcher implements Disposable {
  private suspicions = new WeakMap<Entry, Suspicion>();
  private readonly queued = new WeakSet<Entry>();
  /** The prompts that are known to be stored. */
  private readonly arrived = new WeakMap<Entry, string>();
  /** When the stream last told that the task's session is at work, in milliseconds since 1970. */
  private atWork = new WeakMap<Entry, number>();
  /** When the stream last told anything. */
  private heardAt = 0;
  private timer: Disposable | undefined;
  private connected = false;

  private readonly server: AgentServer;
  private readonly clock: Clock;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
    private readonly prompts: HandOver,
    /** Carries out what a turn's end means; called with the task's queue held. */
    private readonly ending: { end(entry: Entry, event: TaskEvent): Promise<void> },
  ) {
    this.server = ports.server;
    this.clock = ports.clock;
  }

  /** The server told something, if only that it is there. */
  hear(): void {
    this.heardAt = this.clock.now();
  }

  /** Takes in what the server tells of the session of a task. */
  accept(entry: Entry, event: ServerEvent): void {
    if (!isActive(entry.record) || !entry.progress) return;
    if (entry.progress.accept(event, this.clock.now())) this.registry.progressed(entry);

    if (event.type === "session-status") {
      this.suspicions.delete(entry);
      if (event.status.type === "idle") {
        this.atWork.delete(entry);
        this.settle(entry, "hint");
      } else {
        this.atWork.set(entry, this.clock.now());
      }
    } else if (event.type === "session-error") {
      entry.lastError = event.error;
      this.settle(entry, "hint");
    } else if (event.type === "part-changed" && event.part.messageID === entry.record.promptMessageID) {
      if (!isOwnText(event.part)) return;
      // What went wrong before the prompt was there, such as reading a file that goes with it, ends no turn.
      if (!this.hasArrived(entry)) entry.lastError = undefined;
      this.noteArrival(entry);
    } else if (
      event.type === "message-changed" &&
      event.info.role === "assistant" &&
      event.info.completed !== undefined
    ) {
      // After an abort the session is told idle first and its last message is completed later.
      if (event.info.finish !== "tool-calls") this.settle(entry, "hint");
    }
  }

  /** The connection is (again) there and the registry up to date. */
  async connect(): Promise<void> {
    this.connected = true;
    const active = this.registry.active();
    if (active.length === 0) return;
    // The server may have been another one since.
    for (const entry of active) if (entry.unstored) entry.unstored = { ...entry.unstored, isDoubtful: true };
    await Promise.all(
      active.filter(({ record }) => !isQueued(record)).map((entry) => this.rebuildProgress(entry)),
    );
    await this.poll(active);
    this.schedule(FIRST_POLL_MS);
  }

  /** Follows a turn that was at work before its session was a task: it may have ended meanwhile. */
  follow(entry: Entry): void {
    this.settle(entry, "hint");
    this.watch();
  }

  disconnect(): void {
    this.connected = false;
    this.atWork = new WeakMap();
    // What was seen before proves nothing about a server that was away.
    this.suspicions = new WeakMap();
    this.timer?.dispose();
    this.timer = undefined;
  }

  /** Sees to it that polling runs while a task is active, and only then. */
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
      this.noteStalls(active.filter((entry) => this.isVouchedFor(entry)));
      void this.poll(active.filter((entry) => this.isDue(entry))).finally(() => this.watch());
    });
  }

  /** Whether polling has to ask for the task. One that waits is asked for only until its prompt is known to be there. */
  private isDue(entry: Entry): boolean {
    return isQueued(entry.record) ? !this.hasArrived(entry) : !this.isVouchedFor(entry);
  }

  /** The stream told that the task is at work, and would have told its end. */
  private isVouchedFor(entry: Entry): boolean {
    const now = this.clock.now();
    return now - this.heardAt < HEARTBEAT_MS && now - (this.atWork.get(entry) ?? 0) < VOUCHED_MS;
  }

  private noteStalls(entries: readonly Entry[]): void {
    const now = this.clock.now();
    for (const entry of entries)
      if (entry.progress?.checkStall(now, this.ports.settings().stallWarning))
        this.registry.progressed(entry);
  }

  private async poll(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    let statuses: ReadonlyMap<string, SessionStatus>;
    try {
      statuses = await this.server.statuses();
    } catch (error) {
      this.ports.logger.warn(`Polling failed: ${messageOf(error)}`);
      return;
    }
    for (const entry of entries) {
      const status = statuses.get(entry.record.id);
      if (status && status.type !== "idle") {
        this.suspicions.delete(entry);
        this.noteStalls([entry]);
      } else {
        this.settle(entry, "poll");
      }
    }
  }

  /** Reads how the turn stands, once however often it is asked before the answer, and ends the task where it has ended. */
  private settle(entry: Entry, source: "hint" | "poll"): void {
    if (!this.connected || this.queued.has(entry)) return;
    this.queued.add(entry);
    entry.serial
      .run(async () => {
        this.queued.delete(entry);
        const { record } = entry;
        if (!isActive(record)) return;
        const turn = await currentTurn(this.server, record);
        const event = await this.interpret(entry, turn, source);
        // It may have been written meanwhile; then that record stands.
        if (event && entry.record === record) await this.ending.end(entry, event);
      })
      .catch((error: unknown) => {
        this.queued.delete(entry);
        if (error instanceof ServerFailure && error.reason === "not-found")
          this.registry.forget(entry.record.id);
        else
          this.ports.logger.warn(`Task ${shortID(entry.record.id)} could not be read: ${messageOf(error)}`);
      });
  }

  private async interpret(entry: Entry, turn: Turn, source: "hint" | "poll"): Promise<TaskEvent | undefined> {
    switch (turn.kind) {
      case "open":
        return source === "poll" && this.confirmed(entry, turn.mark) && (await this.isOver(entry, turn))
          ? failed(this.clock.now(), INTERRUPTED)
          : undefined;
      case "unanswered":
      case "unseen":
        return this.interpretUnstarted(entry, turn, source);
      default:
        return (await this.isOver(entry, turn)) ? endOf(turn) : undefined;
    }
  }

  /** The prompt has no answer, not even a begun one. */
  private async interpretUnstarted(
    entry: Entry,
    turn: Extract<Turn, { readonly kind: "unanswered" | "unseen" }>,
    source: "hint" | "poll",
  ): Promise<TaskEvent | undefined> {
    const { kind } = turn;
    const now = this.clock.now();
    const { unstored } = entry;
    if (kind === "unanswered") {
      this.noteArrival(entry);
    } else if (unstored?.isDoubtful) {
      await this.prompts.giveAgain(entry, unstored);
      if (!entry.unstored?.isDoubtful) return undefined;
    } else if (unstored && mayBeStoredYet(unstored, entry.lastError, now)) {
      return undefined;
    }
    if (entry.lastError) {
      if (!(await this.isOver(entry, turn))) return undefined;
      if (source === "hint" && !this.hasArrived(entry)) {
        // What went wrong with a file of the prompt is told before the prompt is, and its turn begins all the same.
        this.schedule(FIRST_POLL_MS);
        return undefined;
      }
      return entry.lastError.name === "MessageAbortedError"
        ? { type: "cancelled", at: now }
        : failed(now, entry.lastError);
    }
    if (kind === "unanswered" && isQueued(entry.record)) return undefined;
    if (source === "hint" || !this.confirmed(entry, kind)) return undefined;
    if (kind === "unanswered" && !this.suspicions.get(entry)?.restarted) {
      this.suspicions.set(entry, { mark: kind, since: now, restarted: true });
      const { id, agent, model, promptMessageID } = entry.record;
      await this.server.prompt(id, { messageID: promptMessageID, agent, model, parts: [] });
      return undefined;
    }
    const hasHadItsTime = unstored && !unstored.isDoubtful;
    const since = this.suspicions.get(entry)?.since ?? now;
    if (!hasHadItsTime && now - since < LEFT_BEHIND_MS) return undefined;
    if (!(await this.isOver(entry, turn))) return undefined;
    const isLaunch = unstored && entry.record.status !== "resumed";
    return kind === "unanswered" || isLaunch
      ? failed(now, NEVER_STARTED)
      : { type: "turn-failed", at: now, error: promptLost(entry.record), neverBegan: true };
  }

  private hasArrived(entry: Entry): boolean {
    return this.arrived.get(entry) === entry.record.promptMessageID;
  }

  private noteArrival(entry: Entry): void {
    this.arrived.set(entry, entry.record.promptMessageID);
    entry.unstored = undefined;
  }

  private confirmed(entry: Entry, mark: string): boolean {
    const before = this.suspicions.get(entry);
    if (before?.mark === mark) return true;
    this.suspicions.set(entry, { mark, since: this.clock.now(), restarted: false });
    return false;
  }

  /**
   * Whether nothing follows in a turn that was read like this. An idle answer is worth something only between two
   * readings: one from before can be older than the step that was read, and what was read older than an end.
   */
  private async isOver(entry: Entry, turn: Turn): Promise<boolean> {
    const { id } = entry.record;
    const status = (await this.server.statuses()).get(id);
    if (status && status.type !== "idle") return false;
    // A complete answer ends the turn, whatever else was written meanwhile.
    return (
      turn.kind === "completed" || marksOf(await currentTurn(this.server, entry.record)) === marksOf(turn)
    );
  }

  /** What the turn did so far was not seen by this process. */
  private async rebuildProgress(entry: Entry): Promise<void> {
    const { progress, record } = entry;
    try {
      const messages = await this.server.messages(record.id);
      if (!progress || entry.progress !== progress) return;
      const prompt = messages.findIndex(({ info }) => info.id === record.promptMessageID);
      // What a fork inherited is not its own work.
      if (prompt === -1) return;
      const now = this.clock.now();
      for (const { parts } of messages.slice(prompt + 1))
        for (const part of parts) progress.onPart(part, now);
      this.registry.progressed(entry);
    } catch (error) {
      this.ports.logger.warn(
        `The progress of task ${shortID(record.id)} could not be read: ${messageOf(error)}`,
      );
    }
  }
}

/** Whether the server may still be about to store a prompt that it took. */
function mayBeStoredYet({ prompt, at }: Unstored, error: AgentError | undefined, now: number): boolean {
  const hasFiles = (prompt.files ?? []).length > 0;
  // A file that cannot be read keeps no prompt from being stored; any other error does.
  if (error && !hasFiles) return false;
  return now - at < (hasFiles ? READING_MS : STORING_MS);
}

/** The same as long as nothing changes in a turn. */
function marksOf(turn: Turn): string {
  const mark = "mark" in turn ? turn.mark : "messageID" in turn ? turn.messageID : "";
  return `${turn.kind} ${mark}`;
}

/** How the turn stands that answers the task's present prompt. */
export async function currentTurn(
  server: AgentServer,
  { id, promptMessageID }: Pick<TaskRecord, "id" | "promptMessageID">,
): Promise<Turn> {
  const messages = await server.messages(id, TURN_WINDOW);
  const isInSight = messages.some(({ info }) => info.id === promptMessageID);
  // A long turn moves its prompt out of sight; a prompt that never arrived is not in sight either.
  if (!isInSight && messages.length >= TURN_WINDOW && !(await server.message(id, promptMessageID)))
    return { kind: "unseen" };
  return readTurn(messages, promptMessageID);
}

/** What a turn that stands so means where its session is idle. */
export function endOf(turn: EndedTurn): TaskEvent {
  switch (turn.kind) {
    case "compacted":
    case "completed":
      return { type: "turn-completed", at: turn.at, finalMessageID: turn.messageID, answer: turn.answer };
    case "failed":
      return failed(turn.at, turn.error, turn.messageID);
    case "aborted":
      // While its session works, an answer that overflowed the context looks the same.
      return { type: "cancelled", at: turn.at, finalMessageID: turn.messageID };
    case "between-steps": {
      const error = turn.refused
        ? taskError(
            "PermissionRejected",
            sentence(
              "The permission or question of the tool {0} was turned down, which ended the task.",
              turn.refused,
            ),
          )
        : taskError("NoAnswer", sentence("The turn ended after a tool call, without an answer."));
      return failed(turn.at, error, turn.messageID);
    }
  }
}

function failed(at: number, error: TaskError, finalMessageID?: string): TaskEvent {
  return { type: "turn-failed", at, error, finalMessageID };
}
