import { Refusal } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentence } from "./sentence.ts";
import type { SetupSettings } from "./settings.ts";
import { shortID, type TaskRecord, type TaskWorktree } from "./task.ts";

/** An agent's launch that was refused, because the user has not allowed the setup command of worktrees. */
export interface RefusedSetup {
  readonly kind: "setup";
  /** The agent's session. */
  readonly sessionID: string;
}

/** A command that is running, or has succeeded while its task could not be started yet. */
interface Setup {
  readonly done: Promise<void>;
  readonly abort: AbortController;
}

/** Runs the setup command of worktrees, before a task works there. */
export class WorktreeSetups implements Disposable {
  /** By task ID. */
  private readonly running = new Map<string, Setup>();
  private isOver = false;
  private readonly refusals: Emitter<RefusedSetup>;
  /** Doesn't fire for users' launches, which ask for what is missing themselves. */
  readonly onDidRefuse: Event<RefusedSetup>;

  constructor(
    private readonly ports: Pick<EnginePorts, "worktrees" | "settings" | "clock" | "logger">,
    private readonly registry: Pick<TaskRegistry, "progressed">,
  ) {
    this.refusals = new Emitter(logged(ports.logger, "refusals"));
    this.onDidRefuse = this.refusals.event;
  }

  /**
   * The command, if there is one. Throws a {@link Refusal} if the user has not allowed it.
   * @param callingSessionID the session of the agent that wants a worktree, if one does
   */
  command(callingSessionID?: string): SetupSettings | undefined {
    const { setup } = this.ports.settings().isolation;
    if (!setup || setup.isAllowed) return setup;
    if (callingSessionID !== undefined) this.refusals.fire({ kind: "setup", sessionID: callingSessionID });
    throw new Refusal(
      "setup-not-allowed",
      sentence(
        "The setup command of worktrees isn't allowed yet: {0}. The user can allow it in VS Code; then try again.",
        setup.command,
      ),
    );
  }

  /**
   * Sets up the worktree of a task that waits for it. Once that has succeeded, does nothing until the task has started.
   * Rejects if the command fails, takes too long, is not allowed, or the task ends meanwhile.
   */
  async run(entry: Entry): Promise<void> {
    const { id, worktree } = entry.record;
    if (worktree?.setup !== "pending") return;
    let setup = this.running.get(id);
    if (!setup) {
      setup = this.start(id, worktree);
      this.registry.progressed(entry, () => entry.turn?.progress.onSetup(this.ports.clock.now()));
    }
    await setup.done;
  }

  /**
   * Sets up a worktree that was made again. Rejects if the command fails or is cancelled.
   * @param onEnd called once the command has ended by itself or was cancelled, but not if the engine ends before that
   */
  async runAgain(
    taskID: string,
    worktree: TaskWorktree,
    signal: AbortSignal | undefined,
    onEnd: () => Promise<void>,
  ): Promise<void> {
    const { done, abort } = this.running.get(taskID) ?? this.start(taskID, worktree);
    signal?.addEventListener("abort", () => abort.abort());
    if (signal?.aborted) abort.abort();
    try {
      await done;
    } finally {
      this.running.delete(taskID);
      if (!this.isOver) await onEnd();
    }
  }

  /** Stops the command of a task if it is running, and forgets it. */
  leave(taskID: string): void {
    this.running.get(taskID)?.abort.abort();
    this.running.delete(taskID);
  }

  /** Throws a {@link Refusal} while the worktree of a task is being set up. */
  requireDone({ id, worktree }: Pick<TaskRecord, "id" | "worktree">): void {
    if (!this.running.has(id) && worktree?.setup !== "again") return;
    throw new Refusal(
      "still-running",
      sentence("The worktree of task {0} is still being set up. Try again later.", shortID(id)),
    );
  }

  /** The engine ends. The next one runs again what had not finished. */
  dispose(): void {
    this.isOver = true;
    for (const id of this.running.keys()) this.leave(id);
    this.refusals.dispose();
  }

  private start(taskID: string, worktree: TaskWorktree): Setup {
    const abort = new AbortController();
    if (this.isOver) abort.abort();
    const setup = { done: this.execute(worktree, abort.signal), abort };
    this.running.set(taskID, setup);
    return setup;
  }

  private async execute(worktree: TaskWorktree, signal: AbortSignal): Promise<void> {
    // The setting may have changed since the launch.
    const command = this.command();
    if (command) await this.ports.worktrees.setUp(worktree, { ...command, signal });
  }
}
