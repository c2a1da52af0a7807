import { DisposableStore } from "../../engine/disposable-store.ts";
import { Refusal, unknownTask } from "../../engine/errors.ts";
import { type Disposable, Emitter, type Event, logged } from "../../engine/event.ts";
import type { MirroredRequest, MirroredSession, Refused } from "../../engine/folder-changes.ts";
import type { ForkRequest, ForkStart } from "../../engine/fork/builder.ts";
import type { ForkPreview } from "../../engine/fork/preview.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import type { TaskChange, UnreadableTask } from "../../engine/registry.ts";
import type { OpenRequest, RequestRef } from "../../engine/requests.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Hit } from "../../protocol/output.ts";
import type { Child, SubagentChange } from "../../engine/subagent.ts";
import type { TakenSince } from "../../engine/taken-since.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { Task } from "../../engine/task.ts";
import type { Totals } from "../../engine/totals.ts";
import type { WaitOptions } from "../../engine/waiting.ts";
import type { Conversation, ConversationOpener } from "../../rpc/contract.ts";
import { type Folder, type Folders, requireFolder } from "./folders.ts";

/** The known tasks of all folders. Each session belongs to one folder, so its ID determines which folder is asked. */
export class AllTasks implements Disposable {
  private readonly disposables = new DisposableStore();
  readonly onDidChange: Event<TaskChange>;
  readonly onDidChangeSession: Event<string>;
  readonly onDidChangeSubagent: Event<SubagentChange>;
  readonly onDidChangeRequests: Event<void>;
  readonly onDidWarn: Event<Task>;
  readonly onDidRefuse: Event<Refused>;

  constructor(
    private readonly folders: Folders,
    logger: Logger,
  ) {
    const emitter = <T>(): Emitter<T> => this.disposables.add(new Emitter(logged(logger, "the tasks")));
    const tasks = emitter<TaskChange>();
    const sessions = emitter<string>();
    const subagents = emitter<SubagentChange>();
    const requests = emitter<void>();
    const warnings = emitter<Task>();
    const refusals = emitter<Refused>();
    this.onDidChange = tasks.event;
    this.onDidChangeSession = sessions.event;
    this.onDidChangeSubagent = subagents.event;
    this.onDidChangeRequests = requests.event;
    this.onDidWarn = warnings.event;
    this.onDidRefuse = refusals.event;
    const following = folders.follow(
      ({ known }) =>
        new DisposableStore(
          // At the end, as the folder's requests can no longer be answered in this window.
          { dispose: () => requests.fire() },
          known.onDidChange((change) => tasks.fire(change)),
          known.onDidChangeSession((id) => sessions.fire(id)),
          known.onDidChangeSubagent((change) => subagents.fire(change)),
          known.onDidChangeRequests(() => requests.fire()),
          known.onDidWarn((task) => warnings.fire(task)),
          known.onDidRefuse((refused) => refusals.fire(refused)),
        ),
    );
    this.disposables.add(following);
  }

  /**
   * The folder of a session, by its ID, or of a task, also by a unique beginning or end of its ID. Undefined if there is
   * no reference, or if no folder knows it. Throws a {@link Refusal} if several folders do.
   */
  folderOf(reference: string | undefined): Folder | undefined {
    if (reference === undefined) return undefined;
    const folder = this.folders.of(reference.trim());
    if (folder) return folder;
    const [match, ...others] = this.folders.all.filter(({ known }) => knows(known, reference));
    if (match && others.length > 0) {
      const names = [match, ...others].map(({ name }) => name).join(", ");
      throw new Refusal(
        "ambiguous-task",
        sentence("Tasks in several folders match {0}: {1}. Use more of the ID.", reference.trim(), names),
      );
    }
    return match;
  }

  find(reference: string, parentSessionID?: string): Task {
    const folder = this.folderOf(parentSessionID ?? reference);
    if (folder) return folder.known.find(reference, parentSessionID);
    throw this.unknown(reference, parentSessionID);
  }

  get(taskID: string): Task | undefined {
    return this.of(taskID)?.get(taskID);
  }

  child(sessionID: string): Child | undefined {
    return this.of(sessionID)?.child(sessionID);
  }

  session(sessionID: string): MirroredSession | undefined {
    return this.of(sessionID)?.session(sessionID);
  }

  list(parentSessionID: string): readonly Task[] {
    return this.of(parentSessionID)?.list(parentSessionID) ?? [];
  }

  children(sessionID: string): readonly Child[] {
    return this.of(sessionID)?.children(sessionID) ?? [];
  }

  cleared(parentSessionID: string): readonly Task[] {
    return this.of(parentSessionID)?.cleared(parentSessionID) ?? [];
  }

  unreadable(parentSessionID: string): readonly UnreadableTask[] {
    return this.of(parentSessionID)?.unreadable(parentSessionID) ?? [];
  }

  active(): readonly Task[] {
    return this.folders.all.flatMap(({ known }) => known.active());
  }

  openRequests(): readonly OpenRequest<MirroredRequest>[] {
    return this.folders.all.flatMap(({ known }) => known.openRequests());
  }

  /** The tasks must belong to the same folder. */
  totals(taskIDs: readonly string[]): Totals {
    return this.require(taskIDs[0] ?? "").known.totals(taskIDs);
  }

  /** One result per folder. */
  async takenSince(time: number): Promise<readonly TakenSince[]> {
    // Folders without sessions aren't open, so they can't be asked.
    const folders = this.folders.all.filter(({ known }) => known.sessions().length > 0);
    return Promise.all(folders.map(({ calls }) => calls.takenSince(time)));
  }

  async wait(taskIDs: readonly string[], options?: WaitOptions): Promise<readonly Task[]> {
    return (await Promise.all(taskIDs.map(async (id) => this.require(id).known.wait([id], options)))).flat();
  }

  async openConversation(...[id, send]: Parameters<ConversationOpener>): Promise<Conversation> {
    return this.require(id).openConversation(id, send);
  }

  async lastAnswer(sessionID: string): Promise<string | undefined> {
    return this.require(sessionID).calls.lastAnswer(sessionID);
  }

  async search(id: string, query: string): Promise<readonly Hit[]> {
    return this.require(id).calls.search(id, query);
  }

  async image(id: string, path: string): Promise<string> {
    return this.require(id).calls.image(id, path);
  }

  async explainRequest(request: RequestRef): Promise<MirroredRequest | undefined> {
    return this.require(request.sessionID).calls.explainRequest(request);
  }

  async previewFork(request: ForkRequest, signal?: AbortSignal): Promise<ForkPreview> {
    return this.require(request.sourceSessionID).calls.previewFork(request, signal);
  }

  async forkStarts(sourceSessionID: string): Promise<readonly ForkStart[]> {
    return this.require(sourceSessionID).calls.forkStarts(sourceSessionID);
  }

  dispose(): void {
    this.disposables.dispose();
  }

  private of(sessionID: string): ReadModel | undefined {
    return this.folders.of(sessionID)?.known;
  }

  private require(reference: string): Folder {
    const folder = this.folderOf(reference);
    if (!folder) throw this.unknown(reference);
    return folder;
  }

  /** Prefers the refusal of the folder that the task belonged to, which may know what happened to it. */
  private unknown(reference: string, parentSessionID?: string): Refusal {
    const refusals = this.folders.all.map(({ known }) => refusalOf(known, reference, parentSessionID));
    return (
      refusals.find((refusal) => refusal?.code === "session-gone") ?? refusals[0] ?? unknownTask(reference)
    );
  }
}

/** The known tasks of all folders. */
export type Tasks = Pick<AllTasks, Exclude<keyof AllTasks, "folderOf" | "dispose">>;

/** Whether a reference matches one or more tasks of a folder. */
function knows(known: ReadModel, reference: string): boolean {
  const refusal = refusalOf(known, reference);
  return refusal === undefined || refusal.code === "ambiguous-task";
}

/** Why a reference doesn't identify a task of the folder; undefined if it does. */
function refusalOf(known: ReadModel, reference: string, parentSessionID?: string): Refusal | undefined {
  try {
    known.find(reference, parentSessionID);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** Task commands for all folders: each goes to the folder of its session. */
export function routedCommands(folders: Folders, all: Pick<AllTasks, "folderOf">): TaskCommands {
  /** The daemon may already know a session that this window doesn't, so an unknown one goes to the current folder. */
  const at = (reference: string | undefined): TaskCommands => {
    return (all.folderOf(reference) ?? requireFolder(folders)).calls;
  };
  return {
    launch: async (input) => at(input.parentSessionID).launch(input),
    resume: async (taskID, ...rest) => at(taskID).resume(taskID, ...rest),
    steer: async (taskID, ...rest) => at(taskID).steer(taskID, ...rest),
    withdraw: async (taskID) => at(taskID).withdraw(taskID),
    retry: async (taskID) => at(taskID).retry(taskID),
    continue: async (taskID, ...rest) => at(taskID).continue(taskID, ...rest),
    cancel: async (taskID, ...rest) => at(taskID).cancel(taskID, ...rest),
    cancelBatch: async (batchID, parentSessionID, ...rest) =>
      at(parentSessionID).cancelBatch(batchID, parentSessionID, ...rest),
    stopSubagent: async (subagentID) => at(subagentID).stopSubagent(subagentID),
    adopt: async (sessionID) => at(sessionID).adopt(sessionID),
    clear: async (taskID, ...rest) => at(taskID).clear(taskID, ...rest),
    clearBatch: async (batchID, parentSessionID, ...rest) =>
      at(parentSessionID).clearBatch(batchID, parentSessionID, ...rest),
    restore: async (taskID) => at(taskID).restore(taskID),
    rename: async (taskID, ...rest) => at(taskID).rename(taskID, ...rest),
    output: async (taskID, ...rest) => at(taskID).output(taskID, ...rest),
    answer: async (request, answer) => at(request.sessionID).answer(request, answer),
  };
}
