import { readCallingAgent, type AgentCall } from "./agent-permissions.ts";
import { HandOver, hasArrived, isStored } from "./arrival.ts";
import type { BudgetGuard } from "./budget-guard.ts";
import { Catalog } from "./catalog.ts";
import type { Budget } from "./ceiling.ts";
import { messageOf, Refusal, textOf } from "./errors.ts";
import { Emitter, type CancelSignal, type Disposable, type Event } from "./event.ts";
import type { ForkBuilder, ForkRequest, ForkSettings, ForkStart } from "./fork/builder.ts";
import { noSuchBatch } from "./find-task.ts";
import { ForkHandOver } from "./fork/hand-over.ts";
import type { ForkPreview } from "./fork/preview.ts";
import { freshID, type Random } from "./ids.ts";
import { LiveTranscripts } from "./live-transcripts.ts";
import { noticeID, Notices } from "./notices.ts";
import { Launcher, requirePrompt, type LaunchInput } from "./launcher.ts";
import { LaunchQueue } from "./queue.ts";
import { type AgentServer, type Clock, type Logger } from "./ports.ts";
import {
  TaskRegistry,
  type Entry,
  type TaskChange,
  type TombstoneStore,
  type UnreadableTask,
} from "./registry.ts";
import { Requests } from "./requests.ts";
import { english, sentence, type Sentence, type Text } from "./sentence.ts";
import { Serial } from "./serial.ts";
import {
  sessionOf,
  type AgentInfo,
  type Message,
  type Part,
  type PendingRequest,
  type RequestAnswer,
  type ServerEvent,
  type Session,
  type SessionStatus,
} from "./server-model.ts";
import {
  isActive,
  isStopped,
  shortID,
  taskError,
  type ModelRef,
  type NoticeState,
  type Task,
  type TaskRecord,
} from "./task.ts";
import { isAtWork, type Child, type Subagent, type SubagentChange } from "./subagent.ts";
import { Subagents } from "./subagents.ts";
import type { TakenSince } from "./taken-since.ts";
import type { TokenCounter } from "./token-counter.ts";
import { totals, type Totals } from "./totals.ts";
import type { Transcript } from "./transcript.ts";
import { STATUS_WORDS, transition, type TaskEvent } from "./transitions.ts";
import { answerText, lastAnswer, TURN_WINDOW } from "./turn.ts";
import { currentTurn, endOf, TurnWatcher, type TurnSettings } from "./turns.ts";
import {
  blockingTime,
  waitForEnd,
  waitingTime,
  type OutputOptions,
  type TaskOutput,
  type WaitOptions,
} from "./waiting.ts";
import { WorkTime } from "./work-time.ts";

/** Why a task ended whose session somebody deleted. */
const SESSION_DELETED = taskError(
  "SessionDeleted",
  sentence("The session of the task was deleted. Launch a new task instead."),
);

const NO_STATUSES: ReadonlyMap<string, SessionStatus> = new Map();

export interface EngineSettings extends TurnSettings {
  readonly fork: ForkSettings;
  readonly defaultAgent?: string | undefined;
  readonly defaultModel?: ModelRef | undefined;
  /** How many tasks may work at once; 0: any number. */
  readonly maxConcurrentTasks: number;
  /** How deep agents may launch: 0 not at all, 1 the agents of a session that has no parent, 2 those below it too. */
  readonly maxDepth: number;
  /** Whether a parent learns of the tasks that a person launched. */
  readonly notifyParent: boolean;
  /** What tasks and batches may take. */
  readonly budget: Budget;
}

export interface EnginePorts {
  readonly server: AgentServer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: Random;
  readonly tombstones: TombstoneStore;
  readonly tokens: TokenCounter;
  /** Read at each use, so that a change takes effect at once. */
  readonly settings: () => EngineSettings;
}

export interface ClearOptions {
  /** A task that is at work is cancelled first, instead of being refused. */
  readonly cancelRunning?: boolean | undefined;
  /** Its conversation goes for good. */
  readonly deleteSession?: boolean | undefined;
}

/** A permission or a question that waits for a person, and who asks. */
export interface OpenRequest {
  readonly request: PendingRequest;
  readonly child: Child;
}

/** A task whose agent the server refused a subagent. */
export interface RefusedSubagent {
  readonly task: Task;
  /** How many levels below a session the server would have to allow. */
  readonly depth: number;
}

/** Who asks: a parent that cancelled a task itself need not be told that it was. */
export type Caller = TaskRecord["launchedBy"];

/** Who ended a turn before its time; a ceiling does, too. */
type Ender = Caller | "ceiling";

/**
 * The lifecycle of background tasks. Launches, follows, resumes, cancels and clears them, and tells their parents.
 * Commands reject with a {@link Refusal} where they cannot be, and with a `ServerFailure` where the server did not do
 * its part; either way nothing was changed, unless the refusal is one of what could be done in part only.
 */
export class TaskEngine implements Disposable {
  private readonly registry: TaskRegistry;
  private readonly subagents: Subagents;
  private readonly requests: Requests;
  private readonly turns: TurnWatcher;
  private readonly notices: Notices;
  private readonly transcripts: LiveTranscripts;
  private readonly queue: LaunchQueue;
  private readonly launcher: Launcher;
  private readonly work: WorkTime;
  /** Loaded with the first ceiling that is set. */
  private guard: BudgetGuard | undefined;
  private readonly warnings: Emitter<Task>;
  private readonly refusals: Emitter<RefusedSubagent>;
  /** Whether this engine knew its tasks before. */
  private tookUp = false;
  private readonly forks: () => Promise<ForkBuilder>;
  private readonly prompts: HandOver;
  private readonly forkHandOver: ForkHandOver;
  private readonly adoptions = new Serial();
  private connected = false;
  /** Counts connects and disconnects: one that was overtaken stops. */
  private attempt = 0;
  /** Events that came during a connect; undefined at other times. */
  private early: ServerEvent[] | undefined;
  private readonly subscriptions: readonly Disposable[];
  readonly catalog: Catalog;
  readonly onDidChange: Event<TaskChange>;
  /** The ID of a session that is new, changed or gone. */
  readonly onDidChangeSession: Event<string>;
  readonly onDidChangeSubagent: Event<SubagentChange>;
  /** What waits for a person is not what it was. */
  readonly onDidChangeRequests: Event<void>;
  /** A task whose `ceiling` is nearly used: once for each ceiling, of a batch by one of its tasks. */
  readonly onDidWarn: Event<Task>;
  /** The server's configuration allows no subagents as deep as those of this task. */
  readonly onDidRefuseSubagent: Event<RefusedSubagent>;

  constructor(private readonly ports: EnginePorts) {
    const { server, clock, logger, settings } = ports;
    this.catalog = new Catalog(server);
    this.registry = new TaskRegistry(server, logger, () => clock.now(), ports.tombstones);
    this.subagents = new Subagents(this.registry, server, clock, logger, () => settings().stallWarning);
    this.requests = new Requests(logger);
    const isConnected = (): boolean => this.connected;
    this.notices = new Notices(this.registry, server, this.catalog, clock, logger, isConnected);
    const limit = (): number => settings().maxConcurrentTasks;
    this.queue = new LaunchQueue(this.registry, server, clock, logger, limit);
    this.work = new WorkTime(
      this.registry,
      clock,
      this.requests.onDidChange,
      () => this.openRequests().map(({ request }) => request),
      (entry, waited) => void this.noteWaited(entry, waited),
    );
    this.warnings = new Emitter((error) => logger.error("A listener to warnings failed.", error));
    this.onDidWarn = this.warnings.event;
    this.refusals = new Emitter((error) => logger.error("A listener to refusals failed.", error));
    this.onDidRefuseSubagent = this.refusals.event;
    // Most engines never fork: what it takes is loaded by the first one.
    let forks: Promise<ForkBuilder> | undefined;
    this.forks = () => (forks ??= this.loadForks());
    const end = (entry: Entry, event: TaskEvent): Promise<void> => this.end(entry, event);
    this.prompts = new HandOver(server, clock);
    this.forkHandOver = new ForkHandOver(this.forks, server, this.prompts, clock, logger, end);
    this.launcher = new Launcher(
      ports,
      this.registry,
      this.catalog,
      this.queue,
      this.forks,
      this.prompts,
      this.forkHandOver,
      async (parentSessionID, batchID) => (await this.loadGuard())?.requireRoom(parentSessionID, batchID),
      () => {
        this.turns.watch();
        this.pump();
      },
    );
    this.turns = new TurnWatcher(this.registry, server, clock, logger, settings, this.prompts, end);
    this.transcripts = new LiveTranscripts(server, logger);
    this.onDidChange = this.registry.onDidChange;
    this.onDidChangeSession = this.registry.onDidChangeSession;
    this.onDidChangeSubagent = this.subagents.onDidChange;
    this.onDidChangeRequests = this.requests.onDidChange;
    this.subscriptions = [
      server.onEvent((event) => this.accept(event)),
      this.registry.onDidChange((change) => this.forgetRequests(change)),
      this.subagents.onDidChange((change) => this.forgetRequests(change)),
      this.registry.onDidFindDiscarded((id) => void this.launcher.remove(id)),
      this.registry.onWillLose((entry) => this.registry.keep(entry, this.lost(entry))),
      this.registry.onDidChange(({ id, after }) => {
        const lost = after ? undefined : this.registry.lost().find(({ record }) => record.id === id);
        if (lost) this.notices.deliverSoon(lost);
      }),
      this.registry.onDidChange(({ before, after }) => {
        if (!before || !isActive(before) || (after && isActive(after))) return;
        // Every end frees a slot, and the last one lets polling rest.
        this.pump();
        this.turns.watch();
      }),
    ];
  }

  /** Brings everything up to date after a (re)connect, and takes up what was left undone. */
  async connect(): Promise<void> {
    const { server } = this.ports;
    const attempt = ++this.attempt;
    this.catalog.forget();
    const knownBefore = this.registry.sessions().map(({ id }) => id);
    // What happens while the lists are on their way is newer than they are.
    this.early ??= [];
    try {
      const [sessions, requests] = await Promise.all([server.sessions(), server.pendingRequests()]);
      if (attempt !== this.attempt) return;
      this.applySessions(sessions, knownBefore);
      const statuses = this.subagents.isEmpty() ? NO_STATUSES : await server.statuses();
      if (attempt !== this.attempt) return;
      this.applyRequests(requests, statuses);
    } finally {
      if (attempt === this.attempt) this.replayEarly();
    }
    this.connected = true;
    this.subagents.catchUp();
    await Promise.all([this.takeUp(), this.transcripts.reload()]);
  }

  /** The connection is lost: what needs it rests until the next {@link connect}. */
  disconnect(): void {
    this.connected = false;
    this.attempt++;
    this.replayEarly();
    this.subagents.disconnect();
    this.turns.disconnect();
    this.guard?.disconnect();
    this.notices.disconnect();
    this.queue.rest();
  }

  /** The tasks of a session, oldest first. */
  list(parentSessionID: string): readonly Task[] {
    return this.registry.childrenOf(parentSessionID).map((entry) => this.registry.snapshot(entry));
  }

  /** What is directly below a session, oldest first: its tasks without those cleared, and the subagents of others. */
  children(sessionID: string): readonly Child[] {
    const tasks = this.list(sessionID);
    if (this.registry.session(sessionID)?.archived !== undefined) return tasks;
    const subagents = this.subagents.childrenOf(sessionID);
    if (subagents.length === 0) return tasks;
    return [...tasks, ...subagents].sort((a, b) => a.createdAt - b.createdAt);
  }

  /** The task or subagent that this session is; undefined: neither. */
  child(sessionID: string): Child | undefined {
    return this.get(sessionID) ?? this.subagents.get(sessionID);
  }

  /** Everything that waits for a person now, in any session of the folder, the oldest first. */
  openRequests(): readonly OpenRequest[] {
    return this.requests.all().flatMap((request) => {
      const child = this.child(request.sessionID);
      return child && isAtWork(child) ? [{ request, child }] : [];
    });
  }

  /** Stops a subagent of others and all that works below it; what is at rest stays as it is. */
  async stopSubagent(subagentID: string): Promise<void> {
    const subagent = this.subagents.get(subagentID);
    if (!subagent) throw this.subagents.unknown(subagentID);
    if (isAtWork(subagent)) await this.ports.server.abort(subagentID);
    await this.stopBelow(subagentID);
  }

  /** Makes a task of a subagent of others, as a person asks for it; one that is a task already stays what it is. */
  async adopt(sessionID: string): Promise<Task> {
    const { adopt } = await import("./adoption.ts");
    // One after the other: whoever comes second finds the task.
    return this.adoptions.run(async () => {
      const known = this.registry.entry(sessionID);
      const subagent = this.subagents.get(sessionID);
      if (subagent && isAtWork(subagent)) (await this.loadGuard())?.requireRoomToAdopt(subagent);
      const entry = known ?? (await adopt(sessionID, this.ports, this.registry, this.subagents));
      if (!known) this.turns.follow(entry);
      return this.registry.snapshot(entry);
    });
  }

  /** Sessions of a parent whose task record cannot be used. */
  unreadable(parentSessionID: string): readonly UnreadableTask[] {
    return this.registry.unreadable(parentSessionID);
  }

  /** The agents that a task can run as, the default one first. */
  async agents(): Promise<readonly AgentInfo[]> {
    const { defaultAgent } = this.ports.settings();
    const agents = await this.catalog.agents();
    const first = agents.filter(({ name }) => name === defaultAgent);
    return [...first, ...agents.filter((agent) => !first.includes(agent))];
  }

  /** The settings changed: what waits may have a slot now, and what works another ceiling. */
  async settingsChanged(): Promise<void> {
    const guard = await this.loadGuard();
    if (!this.connected) return;
    guard?.connect(true);
    this.pump();
  }

  session(sessionID: string): Session | undefined {
    return this.registry.session(sessionID);
  }

  /** Every task that is at work now, of any session. */
  active(): readonly Task[] {
    return this.registry.active().map((entry) => this.registry.snapshot(entry));
  }

  /** Undefined: no such task. */
  get(taskID: string): Task | undefined {
    return this.registry.task(taskID);
  }

  /** The task of this ID, or of a unique prefix or suffix of one, among those of a session if given. */
  find(reference: string, parentSessionID?: string): Task {
    return this.registry.snapshot(this.registry.find(reference, parentSessionID));
  }

  sessions(): readonly Session[] {
    return this.registry.sessions();
  }

  /** Every task of the folder, cleared ones too. */
  allTasks(): readonly Task[] {
    return this.registry.all().map((entry) => this.registry.snapshot(entry));
  }

  allSubagents(): readonly Subagent[] {
    return this.subagents.all();
  }

  /** What any session of the folder waits for, the oldest first. */
  allRequests(): readonly PendingRequest[] {
    return this.requests.all();
  }

  subagent(sessionID: string): Subagent | undefined {
    return this.subagents.get(sessionID);
  }

  /** Whether no task is queued or at work, and every parent knows how its tasks ended. */
  isSettled(): boolean {
    return this.registry.isSettled();
  }

  /**
   * Hands a prompt to a new background agent, and returns as soon as the server took it. Where as many tasks work as
   * may, the new one waits in phase `queued`.
   */
  async launch(input: LaunchInput): Promise<Task> {
    return this.registry.snapshot(await this.launcher.launch(input));
  }

  /**
   * Sends a follow-up to a completed task, and returns as soon as the server took it. A subagent of others that is at
   * rest is adopted first.
   * @param call the agent's call that asks for it: made again, it changes nothing
   */
  async resume(taskID: string, prompt: string, call?: AgentCall): Promise<Task> {
    const { server, clock, random } = this.ports;
    requirePrompt(prompt);
    const subagent = this.subagents.get(taskID);
    if (subagent && isAtWork(subagent))
      throw new Refusal(
        "wrong-status",
        sentence("Subagent {0} is at work; wait until it has ended before you resume it.", shortID(taskID)),
      );
    if (subagent) await this.adopt(taskID);
    const entry = this.registry.find(taskID);
    return entry.serial.run(async () => {
      const callID = call?.callID;
      if (callID !== undefined && entry.record.callID === callID) return this.resumeAgain(entry, prompt);
      const at = clock.now();
      const event = { type: "resume", at, promptMessageID: freshID("msg", at, random) } as const;
      // Refuses before anything is done.
      transition(entry.record, event);
      (await this.loadGuard())?.requireRoomFor(entry);
      if (!(await server.session(entry.record.id))) {
        const { id } = entry.record;
        this.registry.forget(id);
        throw this.registry.unknown(id);
      }
      if (call) await this.limit(entry.record, call);
      // The notice of the end before would otherwise be lost with it.
      await this.notices.deliverNow(entry);
      const before = entry.record;
      const resumed = { ...transition(before, event), callID };
      await this.handOverResume(entry, before, resumed, prompt);
      this.turns.watch();
      return this.registry.snapshot(entry);
    });
  }

  /** Whatever a task was allowed so far, an agent that resumes it gets no more than it is allowed itself. */
  private async limit({ id, agent }: TaskRecord, call: AgentCall): Promise<void> {
    const { server } = this.ports;
    const caller = await readCallingAgent(call, server, this.catalog);
    caller.requireMayLaunch(agent);
    const limits = caller.limits(agent, await server.permissions(id));
    if (limits.length > 0) await server.restrict(id, limits);
  }

  /** The call was made before, and its answer lost: the prompt is there, or is handed over now. */
  private async resumeAgain(entry: Entry, text: string): Promise<Task> {
    const mayBeLost = entry.record.status === "resumed" && !entry.unstored;
    if (mayBeLost && (await isStored(this.ports.server, entry.record)) === false) {
      await this.prompts.give(entry, { text });
      this.turns.watch();
    }
    return this.registry.snapshot(entry);
  }

  /**
   * Starts a task that failed or was cancelled anew: a new task with the same prompt, agent and model. A call made while
   * another one is under way gives the same new task.
   */
  async retry(taskID: string): Promise<Task> {
    const entry = this.registry.find(taskID);
    entry.retrying ??= this.launchAgain(entry.record).finally(() => (entry.retrying = undefined));
    return entry.retrying;
  }

  private async launchAgain(record: TaskRecord): Promise<Task> {
    if (record.status !== "error" && record.status !== "cancelled")
      throw new Refusal(
        "wrong-status",
        sentence(
          "Only tasks that failed or were cancelled can be retried: task {0} has the status {1}.",
          shortID(record.id),
          STATUS_WORDS[record.status],
        ),
      );
    const message = await this.promptMessage(record);
    if (!message || !hasArrived(message))
      throw new Refusal(
        "session-gone",
        sentence("The prompt of task {0} no longer exists; launch a new task instead.", shortID(record.id)),
      );
    const { description, agent, model, parentSessionID, parentMessageID, launchedBy, batchID } = record;
    const { forkedFrom, forkOptions } = record;
    const fork = forkedFrom === undefined ? undefined : { sourceSessionID: forkedFrom, ...forkOptions };
    return this.launch({
      prompt: answerText(message),
      files: message.parts.filter((part) => part.type === "file"),
      description,
      agent,
      model,
      parentSessionID,
      parentMessageID,
      launchedBy,
      batchID,
      permitted: [agent],
      fork,
    });
  }

  /** What a fork would inherit, before one is launched. */
  async previewFork(request: ForkRequest, signal?: CancelSignal): Promise<ForkPreview> {
    return (await this.forks()).preview(request, signal);
  }

  /**
   * Ends a task that is at work, and what works below it: model streams and tools stop. A task that finished in the
   * same moment stays finished.
   */
  async cancel(taskID: string, by: Caller = "person"): Promise<Task> {
    const entry = this.registry.find(taskID);
    return this.stopTurn(entry, (at, finalMessageID) => ({ type: "cancelled", at, finalMessageID }), by);
  }

  /** Ends what a task works on, and what works below it. A turn that ended in the same moment counts as it ended. */
  private async stopTurn(
    entry: Entry,
    stopped: (at: number, finalMessageID?: string) => TaskEvent,
    by: Ender,
  ): Promise<Task> {
    const { server, clock } = this.ports;
    const wasActive = isActive(entry.record);
    const wasBuilt = this.forkHandOver.cancel(entry);
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
      if (turn.kind === "unseen" || turn.kind === "unanswered") this.stop(entry);
      await this.stopBelow(record.id).catch((error: unknown) => {
        throw new Refusal(
          "partly-done",
          sentence(
            "Task {0} was stopped, but not all of its subtasks could be stopped: {1}",
            shortID(record.id),
            textOf(error),
          ),
        );
      });
      return this.registry.snapshot(entry);
    });
  }

  /** The tasks of a batch, oldest first, of one parent if given. Throws a {@link Refusal} where there are none. */
  batch(batchID: string, parentSessionID?: string): readonly Task[] {
    const entries = this.registry.batch(batchID.trim(), parentSessionID);
    if (entries.length === 0) throw noSuchBatch(batchID);
    return entries.map((entry) => this.registry.snapshot(entry));
  }

  /** Cancels what still works of a batch; resolves to those tasks. */
  async cancelBatch(
    batchID: string,
    parentSessionID?: string,
    by: Caller = "person",
  ): Promise<readonly Task[]> {
    const active = this.batch(batchID, parentSessionID).filter(isActive);
    return allOf(
      active.map(({ id }) => this.cancel(id, by)),
      (done, total, why) => sentence("{0} of {1} tasks were cancelled. {2}", done, total, why),
    );
  }

  /** Takes a batch off the list; see {@link clear}. */
  async clearBatch(
    batchID: string,
    parentSessionID?: string,
    options: ClearOptions = {},
    by: Caller = "person",
  ): Promise<readonly Task[]> {
    const tasks = this.batch(batchID, parentSessionID);
    const running = tasks.filter(isActive);
    if (running.length > 0 && !options.cancelRunning) throw stillRunning(running.map(({ id }) => id));
    return allOf(
      tasks.map(({ id }) => this.clear(id, options, by)),
      (done, total, why) => sentence("{0} of {1} tasks were cleared. {2}", done, total, why),
    );
  }

  /** What the tasks and everything below them took together. */
  totals(taskIDs: readonly string[]): Totals {
    return totals(this.registry, taskIDs, this.ports.clock.now());
  }

  /** What the tasks took, with everything below them, that were at work at some time since then (milliseconds since 1970). */
  async takenSince(time: number): Promise<TakenSince> {
    const { takenSince } = await import("./taken-since.ts");
    return takenSince(this.registry, this.work, time, this.ports.clock.now());
  }

  /** Takes a task off the list. Its session stays unless said otherwise; {@link restore} brings the task back. */
  async clear(taskID: string, options: ClearOptions = {}, by: Caller = "person"): Promise<Task> {
    const entry = this.registry.find(taskID);
    if (isActive(entry.record)) {
      if (!options.cancelRunning) throw stillRunning([entry.record.id]);
      await this.cancel(entry.record.id, by);
    }
    const cleared = await this.mark(entry, { clearedAt: this.ports.clock.now() });
    if (options.deleteSession) await this.ports.server.deleteSession(cleared.id);
    return cleared;
  }

  /** Undoes {@link clear}. */
  restore(taskID: string): Promise<Task> {
    return this.mark(this.registry.find(taskID), { clearedAt: undefined });
  }

  /** Waits for tasks to end; resolves to them as they then are, without those that are gone. */
  async wait(taskIDs: readonly string[], options: WaitOptions = {}): Promise<readonly Task[]> {
    const entries = taskIDs.map((id) => this.registry.find(id));
    const ids = entries.map(({ record }) => record.id);
    await waitForEnd(this.registry, this.ports.clock, ids, {
      ...options,
      timeout: waitingTime(options.timeout),
    });
    return ids.flatMap((id) => this.get(id) ?? []);
  }

  /**
   * What a task has to show: at once, or with `block` when it has ended or the time is up, in the same form. Notes when
   * a result was fetched.
   */
  async output(taskID: string, { block = false, timeout, signal }: OutputOptions = {}): Promise<TaskOutput> {
    const entry = this.registry.find(taskID);
    const { id } = entry.record;
    if (block) {
      const limit = blockingTime(timeout);
      await waitForEnd(this.registry, this.ports.clock, [id], { timeout: limit, signal });
      if (!this.registry.entry(id)) throw this.registry.unknown(id);
    }
    const { status, finalMessageID } = entry.record;
    const message =
      finalMessageID === undefined ? undefined : await this.ports.server.message(id, finalMessageID);
    const result = message && answerText(message);
    if (status === "completed" && entry.record.retrievedAt === undefined) {
      const noted = this.noteRetrieval(entry);
      // Whoever waited for the end need not wait until that is stored as well.
      if (!block) await noted;
    }
    return { task: this.registry.snapshot(entry), result };
  }

  /** What the task was last asked; undefined: no longer there. */
  async prompt(taskID: string): Promise<string | undefined> {
    const message = await this.promptMessage(this.registry.find(taskID).record);
    return message && answerText(message);
  }

  /** What was answered last in a session; undefined: nothing yet. */
  async lastAnswer(sessionID: string): Promise<string | undefined> {
    return lastAnswer(await this.ports.server.messages(sessionID, TURN_WINDOW));
  }

  /** The conversation of a task or subagent, followed live until disposed. */
  transcript(id: string): Promise<Transcript> {
    return this.transcripts.open(this.childNamed(id).id);
  }

  /** The permissions and questions that a task or subagent waits for, the oldest first. */
  pendingRequests(id: string): readonly PendingRequest[] {
    const child = this.childNamed(id);
    return isAtWork(child) ? this.requests.of(child.id) : [];
  }

  /** What the tool was called with that asks for this; undefined: not known. */
  async toolInput(request: PendingRequest): Promise<Readonly<Record<string, unknown>> | undefined> {
    if (request.type !== "permission" || !request.call) return undefined;
    const { messageID, callID } = request.call;
    const message = await this.ports.server.message(request.sessionID, messageID);
    const part = message?.parts.find((one) => one.type === "tool" && one.callID === callID);
    return part?.type === "tool" ? part.state.input : undefined;
  }

  async answer(request: PendingRequest, answer: RequestAnswer): Promise<void> {
    await this.ports.server.answer(request, answer);
    this.accept({ type: "request-closed", sessionID: request.sessionID, requestID: request.id });
  }

  dispose(): void {
    // What is still under way begins nothing any more.
    this.connected = false;
    this.attempt++;
    for (const subscription of this.subscriptions) subscription.dispose();
    this.turns.dispose();
    this.guard?.dispose();
    this.warnings.dispose();
    this.refusals.dispose();
    this.work.dispose();
    this.queue.rest();
    this.notices.dispose();
    this.transcripts.dispose();
    this.requests.dispose();
    this.subagents.dispose();
    this.registry.dispose();
  }

  /** The prompts of a conversation that a fork can start from, oldest first. */
  async forkStarts(sourceSessionID: string): Promise<readonly ForkStart[]> {
    return (await this.forks()).starts(sourceSessionID);
  }

  private promptMessage({ id, promptMessageID }: TaskRecord): Promise<Message | undefined> {
    return this.ports.server.message(id, promptMessageID);
  }

  private async loadForks(): Promise<ForkBuilder> {
    const { server, tokens, clock, random, settings } = this.ports;
    const { ForkBuilder } = await import("./fork/builder.ts");
    const sessionOf = (id: string): Session | undefined => this.registry.session(id);
    return new ForkBuilder(server, tokens, clock, random, () => settings().fork, sessionOf);
  }

  /** Undefined: nobody ever set a ceiling. */
  private async loadGuard(): Promise<BudgetGuard | undefined> {
    const { clock, logger, settings } = this.ports;
    const isSet = (ceiling: unknown): boolean => (ceiling ?? undefined) !== undefined;
    if (this.guard || !Object.values(settings().budget).some(isSet)) return this.guard;
    const { BudgetGuard } = await import("./budget-guard.ts");
    return (this.guard ??= new BudgetGuard(
      this.registry,
      this.work,
      clock,
      logger,
      () => settings().budget,
      () => this.connected,
      (entry) => this.warnings.fire(this.registry.snapshot(entry)),
      (entry, error) =>
        this.stopTurn(
          entry,
          (at, finalMessageID) => ({ type: "turn-failed", at, error, finalMessageID }),
          "ceiling",
        ),
    ));
  }

  /** The task that a reference names, or the subagent of this ID. */
  private childNamed(reference: string): Child {
    return this.subagents.get(reference) ?? this.find(reference);
  }

  private applySessions(sessions: readonly Session[], knownBefore: readonly string[]): void {
    const there = new Set(sessions.map(({ id }) => id));
    for (const id of knownBefore) if (!there.has(id)) this.registry.forget(id);
    for (const session of sessions) this.registry.adopt(session);
  }

  private applyRequests(
    requests: readonly PendingRequest[],
    statuses: ReadonlyMap<string, SessionStatus>,
  ): void {
    const open = new Set(requests.map(({ id }) => id));
    for (const entry of this.registry.active())
      if (entry.progress?.keepRequests(open)) this.registry.progressed(entry);
    // Before the requests, as those of a turn that began or ended are forgotten.
    this.subagents.resync(statuses, open);
    this.requests.replace(requests);
    for (const request of requests) this.handle({ type: "request-asked", request });
  }

  private replayEarly(): void {
    const early = this.early ?? [];
    this.early = undefined;
    for (const event of early) this.handle(event);
  }

  /** Does what was left undone. */
  private async takeUp(): Promise<void> {
    const guard = await this.loadGuard();
    if (!this.connected) return;
    guard?.connect(this.tookUp);
    this.tookUp = true;
    await this.loseMissing();
    if (!this.connected) return;
    await Promise.all([this.turns.connect(), this.notices.deliverPending(), this.stopLateStarts()]);
    this.pump();
  }

  private pump(): void {
    if (this.connected) this.queue.pump();
  }

  private accept(event: ServerEvent): void {
    this.turns.hear();
    if (this.early) this.early.push(event);
    else this.handle(event);
  }

  private handle(event: ServerEvent): void {
    if (event.type === "heartbeat") return;
    if (event.type === "session-changed") {
      const entry = this.registry.adopt(event.session);
      if (entry && isActive(entry.record)) this.turns.watch();
      return;
    }
    if (event.type === "session-deleted") {
      const entry = this.registry.entry(event.sessionID);
      // The server goes on with the turn of a session that it deletes.
      if (entry && isActive(entry.record)) this.stop(entry);
      this.registry.forget(event.sessionID);
      this.requests.forget(event.sessionID);
      return;
    }
    const entry = this.registry.entry(sessionOf(event));
    // Of a conversation that was written into a fork no event tells; the prompt that follows it is the first. The server
    // tells of the prompt again whenever files changed.
    if (event.type === "message-changed" && event.info.id === entry?.record.promptMessageID)
      if (entry.record.isForked) void this.transcripts.reloadBefore(event.info);
    this.requests.accept(event);
    this.transcripts.accept(event);
    this.notices.accept(event);
    if (!entry) return this.subagents.accept(event);
    this.turns.accept(entry, event);
    this.stopLateStart(entry, event);
    if (event.type === "part-changed" && isTooDeep(event.part))
      this.refusals.fire({
        task: this.registry.snapshot(entry),
        depth: this.registry.above(event.part.sessionID).size + 1,
      });
  }

  /** What a turn asked for has no use once it has ended, nor for the next one. */
  private forgetRequests({ id, before }: TaskChange | SubagentChange): void {
    // A subagent that is adopted works on.
    const now = this.child(id);
    if (before && isAtWork(before) !== (now !== undefined && isAtWork(now))) this.requests.forget(id);
  }

  /**
   * A prompt can be stopped before its turn begins, which then begins all the same, however late. What was asked later in
   * that session is none of the task's.
   */
  private stopLateStart(entry: Entry, event: ServerEvent): void {
    if (event.type !== "message-changed" || event.info.role !== "assistant") return;
    const { completed, parentID } = event.info;
    if (completed === undefined && parentID === entry.record.promptMessageID && isStopped(entry.record))
      this.stop(entry);
  }

  /** Stops the turns that began late while nobody watched. */
  private async stopLateStarts(): Promise<void> {
    const { server, logger } = this.ports;
    const stopped = this.registry.all().filter(({ record }) => isStopped(record));
    if (stopped.length === 0) return;
    try {
      const [statuses, { askedLast }] = await Promise.all([server.statuses(), import("./adoption.ts")]);
      const isLate = async ({ record: { id, promptMessageID } }: Entry): Promise<boolean> =>
        askedLast(await server.messages(id))?.info.id === promptMessageID;
      await Promise.all(
        stopped
          .filter(({ record }) => statuses.has(record.id))
          .map(async (entry) => (await isLate(entry)) && this.stop(entry)),
      );
    } catch (error) {
      logger.warn(`Whether a stopped task began late could not be read: ${messageOf(error)}`);
    }
  }

  private stop({ record }: Entry): void {
    this.ports.server.abort(record.id).catch((error: unknown) => {
      this.ports.logger.warn(`Task ${shortID(record.id)} could not be stopped: ${messageOf(error)}`);
    });
  }

  /** The one way in which a task's turn ends: the record first, then the parent is told. */
  private async end(entry: Entry, event: TaskEvent, by?: Ender): Promise<void> {
    const { record } = entry;
    if (event.type === "cancelled" && by === undefined) {
      const { at, finalMessageID } = event;
      const error = this.guard?.reachedBy(entry, at);
      // It was aborted at its ceiling by a process that was cut off before it could store that.
      if (error) return this.end(entry, { type: "turn-failed", at, error, finalMessageID }, "ceiling");
    }
    const finalMessageID = "finalMessageID" in event ? event.finalMessageID : undefined;
    const next = this.ended(entry, event, (endedAt) => noticeID(record, endedAt, finalMessageID), by);
    const { notice } = next;
    // What the server's messages tell again after a crash is stored together with the notice's delivery.
    const storesFirst =
      notice.state !== "pending" ||
      finalMessageID === undefined ||
      event.type === "cancelled" ||
      by === "ceiling";
    try {
      if (storesFirst) await this.registry.record(entry, next);
      else this.registry.keep(entry, next);
    } catch (error) {
      // It ended all the same; the notice's delivery stores it first, and tries again.
      this.ports.logger.warn(`The end of task ${shortID(record.id)} was not stored: ${messageOf(error)}`);
    }
    this.ports.logger.info(`Task ${shortID(record.id)}: ${record.status} → ${next.status}.`);
    const answer = event.type === "turn-completed" ? event.answer : undefined;
    void this.notices.deliver(entry, { storesFirst, answer });
  }

  private ended(
    entry: Entry,
    event: TaskEvent,
    noticeID: (endedAt: number) => string,
    by: Ender | undefined,
  ): TaskRecord {
    const { record } = entry;
    const ended = transition(record, event);
    const toolCalls = record.toolCalls + (entry.progress?.snapshot().toolCalls ?? 0);
    const notice = this.noticeFor(ended, noticeID(ended.endedAt ?? ended.startedAt), by);
    return { ...ended, notice, toolCalls, worked: this.work.of(entry, ended.endedAt), queued: undefined };
  }

  /** What becomes of a task whose session is deleted while it is at work. */
  private lost(entry: Entry): TaskRecord {
    const { record } = entry;
    const event = { type: "turn-failed", at: this.ports.clock.now(), error: SESSION_DELETED } as const;
    // When it was deleted an earlier process may have seen at another time; the notice is the same.
    return this.ended(
      entry,
      event,
      () => noticeID(record, record.startedAt, SESSION_DELETED.name),
      undefined,
    );
  }

  /** Tasks whose session was deleted while no process watched. */
  private async loseMissing(): Promise<void> {
    const { server, logger } = this.ports;
    try {
      for (const record of this.registry.missing())
        if (!(await server.session(record.id))) this.registry.lose(record);
    } catch (error) {
      logger.warn(`Which tasks are gone could not be read: ${messageOf(error)}`);
    }
  }

  /** Nothing goes on working for a task that was stopped. */
  private async stopBelow(taskID: string): Promise<void> {
    const below = this.registry.descendantsOf(taskID);
    if (below.length === 0) return;
    const statuses = await this.ports.server.statuses();
    const outcomes = await Promise.allSettled(
      below.map(async ({ id }) => {
        const entry = this.registry.entry(id);
        // Its parent, cancelled too, is not told.
        if (entry && isActive(entry.record)) await this.cancel(id, "agent");
        else if (statuses.has(id)) await this.ports.server.abort(id);
      }),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;
  }

  private noticeFor(ended: TaskRecord, messageID: string, by: Ender | undefined): NoticeState {
    if (by === "agent" && ended.status === "cancelled")
      return { state: "skipped", reason: english(sentence("The parent cancelled the task itself.")) };
    if (ended.launchedBy === "person" && !this.ports.settings().notifyParent)
      return { state: "skipped", reason: english(sentence("Parents are not told, by the settings.")) };
    return { state: "pending", messageID, attempts: 0 };
  }

  private async handOverResume(
    entry: Entry,
    before: TaskRecord,
    resumed: TaskRecord,
    text: string,
  ): Promise<void> {
    await this.registry.save(entry, { ...resumed, notice: { state: "none" }, retrievedAt: undefined });
    try {
      await this.prompts.give(entry, { text });
    } catch (error) {
      await this.registry.record(entry, before).catch(() => undefined);
      throw error;
    }
  }

  private async noteRetrieval(entry: Entry): Promise<void> {
    try {
      await this.mark(entry, { retrievedAt: this.ports.clock.now() });
    } catch (error) {
      // Whoever asked for the result has it.
      this.ports.logger.warn(
        `The retrieval of ${shortID(entry.record.id)} was not stored: ${messageOf(error)}`,
      );
    }
  }

  /** Where there are ceilings, an engine that is started later is not to take the wait for work. */
  private async noteWaited(entry: Entry, waited: number): Promise<void> {
    if (!this.guard || !this.connected) return;
    const { id, startedAt } = entry.record;
    try {
      await entry.serial.run(async () => {
        const { record } = entry;
        if (isActive(record) && record.startedAt === startedAt)
          await this.registry.save(entry, { ...record, waited });
      });
    } catch (error) {
      this.ports.logger.warn(`How long task ${shortID(id)} waited was not stored: ${messageOf(error)}`);
    }
  }

  private mark(entry: Entry, facts: Pick<Partial<TaskRecord>, "clearedAt" | "retrievedAt">): Promise<Task> {
    return entry.serial.run(async () => {
      await this.registry.save(entry, { ...entry.record, ...facts });
      return this.registry.snapshot(entry);
    });
  }
}

/** What the commands gave. Where only some succeeded, `partly` says so. */
async function allOf(
  commands: readonly Promise<Task>[],
  partly: (done: number, total: number, why: Text) => Sentence,
): Promise<readonly Task[]> {
  const outcomes = await Promise.allSettled(commands);
  const done = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (!failed) return done;
  throw done.length === 0
    ? failed.reason
    : new Refusal("partly-done", partly(done.length, outcomes.length, textOf(failed.reason)));
}

function stillRunning(taskIDs: readonly string[]): Refusal {
  const ids = taskIDs.map(shortID).join(", ");
  return new Refusal(
    "still-running",
    taskIDs.length === 1
      ? sentence("Task {0} is still at work; cancel it first, or say that it may be cancelled.", ids)
      : sentence("Tasks {0} are still at work; cancel them first, or say that they may be cancelled.", ids),
  );
}

function isTooDeep(part: Part): boolean {
  return part.type === "tool" && part.state.status === "error" && part.state.isTooDeep === true;
}
