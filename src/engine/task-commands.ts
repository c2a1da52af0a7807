import type { TaskEngine } from "./engine.ts";

/** What changes tasks, or stops what works below them. */
export type TaskCommands = Pick<
  TaskEngine,
  | "launch"
  | "resume"
  | "retry"
  | "cancel"
  | "cancelBatch"
  | "stopSubagent"
  | "adopt"
  | "clear"
  | "clearBatch"
  | "restore"
  | "output"
  | "answer"
>;
