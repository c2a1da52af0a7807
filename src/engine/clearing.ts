import type { Caller, Ending } from "./ending.ts";
import { Refusal, textOf } from "./errors.ts";
import type { AgentServer, Clock } from "./ports.ts";
import type { TaskRegistry } from "./registry.ts";
import { sentence, type Sentence, type Text } from "./sentence.ts";
import type { Synchronizer } from "./synchronizer.ts";
import { isActive, shortID, type Task } from "./task.ts";
import type { WorktreeWork } from "./worktree-work.ts";

export interface ClearOptions {
  /** Cancels a running task first, instead of refusing. What runs below a task is cancelled if a user asks. */
  readonly cancelRunning?: boolean | undefined;
  /** Deletes the conversation permanently. */
  readonly deleteSession?: boolean | undefined;
}

interface ClearingParts {
  readonly server: AgentServer;
  readonly clock: Clock;
  readonly registry: TaskRegistry;
  readonly ending: Ending;
  readonly worktreeWork: WorktreeWork;
  readonly synchronizer: Synchronizer;
}

/** Removes tasks from the list. */
export class Clearing {
  constructor(private readonly parts: ClearingParts) {}

  /**
   * Removes a task from the list. With `deleteSession`, its session is deleted with all its descendants, unless a worktree
   * holds their work.
   */
  async clear(taskID: string, options: ClearOptions, by: Caller): Promise<Task> {
    const { clock, registry, ending, worktreeWork } = this.parts;
    const entry = registry.find(taskID);
    const { id } = entry.record;
    if (options.deleteSession) await worktreeWork.requireNone(id);
    let partly: ((why: Text) => Sentence) | undefined;
    try {
      // The end of a subtask would be told to the task, which would begin again.
      if (options.cancelRunning && by === "person" && !isActive(entry.record)) {
        if ((await ending.stopDescendants(id)) > 0)
          partly = (why) =>
            sentence("The subtasks of task {0} were stopped, but it wasn't cleared. {1}", shortID(id), why);
      }
      let isDone = false;
      while (!isDone) {
        if (isActive(entry.record)) {
          if (!options.cancelRunning) throw stillRunning([id]);
          await ending.cancel(entry, by);
          partly = (why) => sentence("Task {0} was cancelled, but not cleared. {1}", shortID(id), why);
        }
        isDone = await entry.serial.run(async () => {
          // It may have been resumed in the meantime.
          if (isActive(entry.record)) return false;
          await registry.storeThenShow(entry, { ...entry.record, clearedAt: clock.now() });
          return true;
        });
      }
      const cleared = registry.snapshot(entry);
      partly = (why) => sentence("Task {0} was cleared, but not deleted. {1}", shortID(id), why);
      if (options.deleteSession) await this.deleteSession(id);
      return cleared;
    } catch (error) {
      throw partly ? new Refusal("partly-done", partly(textOf(error))) : error;
    }
  }

  private async deleteSession(id: string): Promise<void> {
    const { server, registry, ending, synchronizer } = this.parts;
    await ending.stopDescendants(id);
    const ids = [...registry.descendantsOf(id).map((session) => session.id), id];
    await server.deleteSession(id);
    // No event comes from a worktree that was removed.
    for (const sessionID of ids) synchronizer.accept({ type: "session-deleted", sessionID });
  }
}

export function stillRunning(taskIDs: readonly string[]): Refusal {
  const ids = taskIDs.map(shortID).join(", ");
  return new Refusal(
    "still-running",
    taskIDs.length === 1
      ? sentence("Task {0} is still running. Cancel it first, or allow it to be cancelled.", ids)
      : sentence("Tasks {0} are still running. Cancel them first, or allow them to be cancelled.", ids),
  );
}
