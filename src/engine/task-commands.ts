import type { TaskEngine } from "./engine.ts";

/** What changes tasks, whichever window carries it out. */
export type TaskCommands = Pick<
  TaskEngine,
  | "launch"
  | "resume"
  | "retry"
  | "cancel"
  | "cancelBatch"
  | "clear"
  | "clearBatch"
  | "restore"
  | "output"
  | "answer"
  | "sendNotice"
>;
