import type { TaskEngine } from "./engine.ts";

/** The engine's commands for changing tasks and stopping subagents. */
export type TaskCommands = Pick<
  TaskEngine,
  | "launch"
  | "resume"
  | "steer"
  | "withdraw"
  | "retry"
  | "continue"
  | "cancel"
  | "cancelBatch"
  | "stopSubagent"
  | "adopt"
  | "clear"
  | "clearBatch"
  | "restore"
  | "rename"
  | "output"
  | "answer"
>;
