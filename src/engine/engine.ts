import type { AgentCall } from "./agent-permissions.ts";
import type { Catalog } from "./catalog.ts";
import { stillRunning, type ClearOptions } from "./clearing.ts";
import type { Caller } from "./ending.ts";
import { messageOf, Refusal, textOf } from "./errors.ts";
import type { Disposable, Event } from "./event.ts";
import { finalText } from "./final-text.ts";
import type { Tombstone } from "./find-task.ts";
import { FolderTasks } from "./folder-tasks.ts";
import type { ForkRequest, ForkStart } from "./fork/builder.ts";
import type { ForkPreview } from "./fork/preview.ts";
import type { LaunchInput } from "./launcher.ts";
import { givenDescription } from "./task-names.ts";
import { createParts, type EngineParts } from "./parts.ts";
import { ServerFailure, type EnginePorts } from "./ports.ts";
import type { Entry, TaskChange, TaskRegistry } from "./registry.ts";
import { sentence, type Sentence, type Text } from "./sentence.ts";
import type { AgentInfo, PendingRequest, RequestAnswer, Session, ToolCall } from "./server-model.ts";
import type { SteerOptions } from "./steering.ts";
import { isRunning, type Subagent, type SubagentChange } from "./subagent.ts";
import type { Refused } from "./folder-changes.ts";
import { takenSince, type TakenSince } from "./taken-since.ts";
import { isActive, shortID, type Task, type TaskRecord } from "./task.ts";
import type { Transcript } from "./transcript.ts";
import type { Family } from "./tree.ts";
import { lastAnswer, TURN_WINDOW } from "./turn.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";
import type { WorktreeWork } from "./worktree-work.ts";
import { blockingTime, waitForEnd, type OutputOptions, type TaskOutput } from "./waiting.ts";

export type { Caller } from "./ending.ts";
import type { RequestRef } from "./requests.ts";

export type { OpenRequest } from "./requests.ts";
export type { EngineSettings } from "./settings.ts";

/**
 * The lifecycle of background tasks: launches, follows, resumes, cancels and clears them, and notifies their parents.
 * Commands reject with a {@link Refusal} if they are not possible, and with a `ServerFailure` if the server failed. In
 * both cases nothing was changed, except for refusals with the code `partly-done`.
 */
export class TaskEngine extends FolderTasks<Session, PendingRequest> implements Disposable {
  protected readonly sessionTree: Family<Session>;
  protected readonly tasks: Family<Task>;
  readonly subagents: Family<Subagent>;
  private readonly registry: TaskRegistry;
  private readonly parts: EngineParts;
  readonly catalog: Catalog;
  readonly onDidChange: Event<TaskChange>;
  /** The ID of a session that was added, changed or removed. */
  readonly onDidChangeSession: Event<string>;
  readonly onDidChangeSubagent: Event<SubagentChange>;
  /** The pending requests have changed. */
  readonly onDidChangeRequests: Event<void>;
  /** A task nears a limit (`nearLimit`). Fires once per limit; for a batch, with one of its tasks. */
  readonly onDidWarn: Event<Task>;
  readonly onDidRefuse: Event<Refused>;

  constructor(private readonly ports: EnginePorts) {
    super(ports.clock);
    this.parts = createParts(ports);
    const { registry, subagents, requests, catalog, guard, synchronizer, setups } = this.parts;
    this.registry = registry;
    this.sessionTree = registry.sessionTree;
    this.tasks = registry.tasks;
    this.subagents = subagents;
    this.catalog = catalog;
    this.onDidChange = registry.onDidChange;
    this.onDidChangeSession = registry.onDidChangeSession;
    this.onDidChangeSubagent = subagents.onDidChange;
    this.onDidChangeRequests = requests.onDidChange;
    this.onDidWarn = guard.onDidWarn;
    this.onDidRefuse = (listener) => {
      const subscriptions = [synchronizer.onDidRefuseSubagent(listener), setups.onDidRefuse(listener)];
      return { dispose: () => subscriptions.forEach((one) => one.dispose()) };
    };
  }

  /** Updates everything after each connect, and resumes unfinished work such as notices. */
  connect(): Promise<void> {
    return this.parts.synchronizer.connect();
  }

  /** The connection is lost. Work that needs it pauses until the next {@link connect}. */
  disconnect(): void {
    this.parts.synchronizer.disconnect();
  }

  settingsChanged(): void {
    this.parts.synchronizer.settingsChanged();
  }

  /** The pending requests of all sessions of the folder, the oldest first. */
  get requests(): readonly PendingRequest[] {
    return this.parts.requests.all();
  }

  protected get tombstones(): readonly Tombstone[] {
    return this.registry.memory.tombstones;
  }

  /** All active tasks (queued or running), of any session. */
  active(): readonly Task[] {
    return this.registry.active().map((entry) => this.registry.snapshot(entry));
  }

  /** Whether no task is queued or running, and every parent has been notified. */
  isSettled(): boolean {
    return this.registry.isSettled();
  }

  /** What tasks active since that time (milliseconds since 1970) used, including their descendants. */
  async takenSince(time: number): Promise<TakenSince> {
    return takenSince(this.registry, this.parts.work, time, this.clock.now());
  }

  /** The agents that a task can run as, the default one first. */
  async agents(): Promise<readonly AgentInfo[]> {
    const { defaultAgent } = this.ports.settings();
    const agents = await this.catalog.agents();
    const first = agents.filter(({ name }) => name === defaultAgent);
    return [...first, ...agents.filter((agent) => !first.includes(agent))];
  }

  /** See {@link Launcher.launch}. */
  async launch(input: LaunchInput): Promise<Task> {
    return this.registry.snapshot(await this.parts.launcher.launch(input));
  }

  /** See {@link Relaunch.retry}. */
  async retry(taskID: string): Promise<Task> {
    return this.registry.snapshot(await this.parts.relaunch.retry(this.registry.find(taskID)));
  }

  /** See {@link Relaunch.continue}. */
  async continue(taskID: string, prompt?: string): Promise<Task> {
    return this.registry.snapshot(await this.parts.relaunch.continue(this.registry.find(taskID), prompt));
  }

  /** See {@link Resume.run}. */
  resume(taskID: string, prompt: string, call?: AgentCall): Promise<Task> {
    return this.parts.resume.run(taskID, prompt, call);
  }

  /** See {@link Steering.steer}. */
  steer(taskID: string, text: string, options?: SteerOptions): Promise<Task> {
    return this.parts.steering.steer(taskID, text, options);
  }

  /** See {@link Steering.withdraw}. */
  async withdraw(taskID: string): Promise<string> {
    return this.parts.steering.withdraw(taskID);
  }

  /** See {@link Adoption.adopt}. */
  async adopt(sessionID: string): Promise<Task> {
    return this.registry.snapshot(await this.parts.adoption.adopt(sessionID));
  }

  /** What a fork would inherit, without launching it. */
  async previewFork(request: ForkRequest, signal?: AbortSignal): Promise<ForkPreview> {
    return this.parts.forks.preview(request, signal);
  }

  /** The prompts of a conversation that a fork can start from, oldest first. */
  async forkStarts(sourceSessionID: string): Promise<readonly ForkStart[]> {
    return this.parts.forks.starts(sourceSessionID);
  }

  /** See {@link Ending.cancel}. */
  async cancel(taskID: string, by: Caller | "parent" = "person"): Promise<Task> {
    return this.parts.ending.cancel(this.registry.find(taskID), by);
  }

  /** Cancels the active tasks of a batch, and resolves to those tasks. */
  async cancelBatch(
    batchID: string,
    parentSessionID?: string,
    by: Caller = "person",
  ): Promise<readonly Task[]> {
    const active = this.batch(batchID, parentSessionID).filter(isActive);
    return allOf(
      active.map(({ id }) => this.cancel(id, by)),
      (done, total, why) => sentence("Cancelled {0} of {1} tasks. {2}", done, total, why),
    );
  }

  /** Stops a subagent that is not a task, if it is running, and all its descendants. */
  async stopSubagent(subagentID: string): Promise<void> {
    const subagent = this.parts.subagents.get(subagentID);
    if (!subagent) throw this.parts.subagents.unknown(subagentID);
    const wasRunning = isRunning(subagent);
    if (wasRunning) await this.ports.server.abort(subagentID);
    try {
      await this.parts.ending.stopDescendants(subagentID);
    } catch (error) {
      if (!wasRunning) throw error;
      throw new Refusal(
        "partly-done",
        sentence(
          "Stopped subagent {0}, but not all of its subtasks: {1}",
          shortID(subagentID),
          textOf(error),
        ),
      );
    }
  }

  /** See {@link Clearing.clear}; {@link restore} undoes this. */
  async clear(taskID: string, options: ClearOptions = {}, by: Caller = "person"): Promise<Task> {
    return this.parts.clearing.clear(taskID, options, by);
  }

  /** Removes a batch from the list; see {@link clear}. */
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
      (done, total, why) => sentence("Cleared {0} of {1} tasks. {2}", done, total, why),
    );
  }

  /** Gives a task another description. The title of its session stays. */
  async rename(taskID: string, description: string): Promise<Task> {
    return this.mark(this.registry.find(taskID), { description: givenDescription(description) });
  }

  /** Undoes {@link clear}. */
  restore(taskID: string): Promise<Task> {
    return this.mark(this.registry.find(taskID), { clearedAt: undefined });
  }

  /**
   * The state and result of a task: immediately, or with `block` once it has ended or the timeout has passed. Stores
   * when a result was fetched.
   */
  async output(taskID: string, { block = false, timeout, signal }: OutputOptions = {}): Promise<TaskOutput> {
    const entry = this.registry.find(taskID);
    const { id } = entry.record;
    if (block) {
      await waitForEnd(this, this.clock, [id], { timeoutMs: blockingTime(timeout), signal });
      if (!this.registry.entry(id)) throw this.registry.unknown(id);
    }
    for (;;) {
      const { status, endedAt } = entry.record;
      const result = await finalText(this.ports.server, entry.record, entry.answer);
      if (status === "completed" && entry.record.retrievedAt === undefined) {
        const noted = this.noteRetrieval(entry, endedAt);
        // A caller that waited for the end should not also wait for this to be stored.
        if (!block) await noted;
      }
      const ended = isActive(entry.record) ? undefined : entry.record;
      if (ended?.worktree) await this.parts.predictions.flush();
      const changes = ended && (await this.parts.worktrees.changesAtEnd(ended));
      // If a turn has begun or ended in the meantime, the result is that of another one.
      if (entry.record.endedAt === endedAt) {
        // Parts that only grow change the progress without a change of the task that anybody is told of.
        const progress = entry.turn?.progress.snapshot();
        return { task: { ...this.registry.snapshot(entry), progress }, result, changes };
      }
    }
  }

  /** What users do with isolated tasks and their work. */
  get worktreeWork(): WorktreeWork {
    return this.parts.worktreeWork;
  }

  /** Where agents work besides the folder. */
  get worktrees(): Pick<TaskWorktrees, "of" | "directories"> {
    return this.parts.worktrees;
  }

  /** The latest answer in a session. Undefined if there is none. */
  async lastAnswer(sessionID: string): Promise<string | undefined> {
    return lastAnswer(await this.ports.server.messages(sessionID, TURN_WINDOW));
  }

  /** The conversation of a task or subagent, updated live until disposed. */
  transcript(id: string): Promise<Transcript> {
    return this.parts.transcripts.open(this.childNamed(id).id);
  }

  /** The tool call that made a request. Undefined if it, or its input, isn't known yet. */
  async toolCall(request: PendingRequest): Promise<ToolCall | undefined> {
    if (request.type !== "permission" || !request.call) return undefined;
    const { messageID, callID } = request.call;
    const message = await this.ports.server.message(request.sessionID, messageID);
    const part = message?.parts.find((one) => one.type === "tool" && one.callID === callID);
    return part?.type === "tool" && part.state.status !== "pending"
      ? { tool: part.tool, input: part.state.input }
      : undefined;
  }

  async answer({ sessionID, id: requestID }: RequestRef, answer: RequestAnswer): Promise<void> {
    const request = this.parts.requests.get(requestID);
    if (!request)
      throw this.parts.synchronizer.isConnected
        ? new ServerFailure("answer", "not-found", sentence("This request is no longer waiting."))
        : new ServerFailure("answer", "unreachable", sentence("OpenCode isn't connected yet. Try again."));
    this.requireAnswerable(request, answer);
    const close = (): void =>
      this.parts.synchronizer.accept({ type: "request-closed", sessionID, requestID });
    await this.ports.server.answer(request, answer).catch((error: unknown) => {
      if (error instanceof ServerFailure && error.reason === "not-found") close();
      throw error;
    });
    close();
  }

  /** See {@link Collisions.beginWrite}. */
  beginWrite(sessionID: string, paths: readonly string[]): void {
    this.parts.collisions.beginWrite(sessionID, paths);
  }

  dispose(): void {
    for (const part of this.parts.disposables) part.dispose();
  }

  private requireAnswerable(request: PendingRequest, answer: RequestAnswer): void {
    if (request.type !== "permission" || answer.type !== "permission") return;
    const others = this.requests
      .filter((one) => one.type === "permission")
      .filter(({ id, sessionID }) => id !== request.id && sessionID === request.sessionID);
    if (answer.reply !== "reject") {
      this.parts.collisions.requireUnchanged(request);
      // It allows what else the session asks for of this kind.
      const also = others.filter(({ permission }) => permission === request.permission);
      if (answer.reply === "always") for (const one of also) this.parts.collisions.requireUnchanged(one);
    } else if (answer.message && others.length > 0)
      throw new Refusal(
        "wrong-status",
        sentence(
          "The agent waits for another permission, too. OpenCode would reject that as well and end the turn, so that the agent never reads the message. Answer the other request first, or reject without a message.",
        ),
      );
  }

  private async noteRetrieval(entry: Entry, endedAt: number | undefined): Promise<void> {
    try {
      await entry.serial.run(async () => {
        // Unless a follow-up has begun.
        if (entry.record.endedAt === endedAt) await this.markNow(entry, { retrievedAt: this.clock.now() });
      });
    } catch (error) {
      // The caller has the result anyway.
      this.ports.logger.warn(
        `Couldn't store that the result of ${shortID(entry.record.id)} was read: ${messageOf(error)}`,
      );
    }
  }

  private mark(entry: Entry, facts: Facts): Promise<Task> {
    return entry.serial.run(() => this.markNow(entry, facts));
  }

  /** Must be called from within the task's queue. */
  private async markNow(entry: Entry, facts: Facts): Promise<Task> {
    await this.registry.storeThenShow(entry, { ...entry.record, ...facts });
    return this.registry.snapshot(entry);
  }
}

/** What a task's record can be given beside its turns. */
type Facts = Pick<Partial<TaskRecord>, "clearedAt" | "retrievedAt" | "description">;

/** Resolves to the results of all commands. If only some succeeded, rejects with what `partly` says. */
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
