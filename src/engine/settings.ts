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
  /** Milliseconds without a sign of life after which a task counts as stalled; 0: never. */
  readonly stallWarning: number;
  readonly fork: ForkSettings;
  readonly defaultAgent?: string | undefined;
  readonly defaultModel?: ModelRef | undefined;
  /** How many tasks may work at once; 0: any number. */
  readonly maxConcurrentTasks: number;
  /** How deep agents may launch: 0 not at all, 1 the agents of a session that has no parent, 2 those below it too. */
  readonly maxDepth: number;
  /** Whether a parent learns of the tasks that a user launched. */
  readonly notifyParent: boolean;
  /** What becomes of a task's write to a file that another session changed since the task read it; `off`: nobody is told either. */
  readonly collisions: "block" | "warn" | "off";
  /** What tasks and batches may take. */
  readonly budget: Budget;
}
