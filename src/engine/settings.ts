import type { Budget } from "./limit.ts";
import type { CutLimits } from "./fork/cut.ts";
import type { ForkOptions } from "./fork/plan.ts";
import type { Isolation, ModelRef } from "./task.ts";

export interface ForkSettings extends CutLimits {
  readonly strategy: ForkOptions["strategy"];
}

export interface IsolationSettings {
  readonly default: Isolation;
  /** The folder in which worktrees are made. Undefined for one beside the repository. */
  readonly location?: string | undefined;
  /** What worktrees begin with: the folder as it is now, or the last commit. */
  readonly startFrom: "whatYouSee" | "head";
  /** Ignored files to copy into worktrees, as in `.gitignore`, unless the folder has a `.worktreeinclude`. */
  readonly include?: readonly string[] | undefined;
  /** What to run in a worktree before its task gets the prompt. */
  readonly setup?: SetupSettings | undefined;
}

export interface SetupSettings {
  /** A command line of the user's shell. */
  readonly command: string;
  /** Whether the user has allowed this command for the folder. */
  readonly isAllowed: boolean;
  /** How long it may take, in milliseconds. */
  readonly timeout: number;
}

/** The default settings, and those of versions without isolation. */
export const NO_ISOLATION: IsolationSettings = { default: "folder", startFrom: "whatYouSee" };

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
  readonly isolation: IsolationSettings;
  /** The limits of tasks and batches. */
  readonly budget: Budget;
}
