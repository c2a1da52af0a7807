import type { Budget } from "./limit.ts";
import type { CutLimits } from "./fork/cut.ts";
import type { ForkOptions } from "./fork/plan.ts";
import type { ModelRef } from "./task.ts";

export interface ForkSettings extends CutLimits {
  readonly strategy: ForkOptions["strategy"];
}

export interface EngineSettings {
  /** Milliseconds between polls while a task is active. */
  readonly pollInterval: number;
  /** After how many milliseconds without activity a task counts as stalled. 0 means never. */
  readonly stallWarning: number;
  readonly fork: ForkSettings;
  readonly defaultAgent?: string | undefined;
  readonly defaultModel?: ModelRef | undefined;
  /** How many tasks may run at once. 0 means no limit. */
  readonly maxConcurrentTasks: number;
  /** How deep agents may launch tasks: 0 not at all, 1 only agents of root sessions, 2 also agents of their tasks, … */
  readonly maxDepth: number;
  /** Whether parents are notified of tasks that a user launched. */
  readonly notifyParent: boolean;
  /** How to treat writes to a file that another session changed since the task read it. `off` does not mark them. */
  readonly collisions: "block" | "warn" | "off";
  /** The limits of tasks and batches. */
  readonly budget: Budget;
}
