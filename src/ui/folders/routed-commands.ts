import type { TaskCommands } from "../../engine/task-commands.ts";
import type { AllTasks } from "./all-tasks.ts";
import type { Folders } from "./folders.ts";
import { requireFolder } from "./require-folder.ts";

/** The commands of all folders: each goes to the folder of the session that it is about. */
export function routedCommands(folders: Folders, all: Pick<AllTasks, "folderOf">): TaskCommands {
  /** Another window may know already what this one does not: then the current folder's says what it is. */
  const at = (reference: string | undefined): TaskCommands => {
    const folder = reference === undefined ? undefined : all.folderOf(reference);
    return (folder ?? requireFolder(folders)).calls;
  };
  return {
    launch: async (input) => at(input.parentSessionID).launch(input),
    resume: async (taskID, ...rest) => at(taskID).resume(taskID, ...rest),
    retry: async (taskID) => at(taskID).retry(taskID),
    cancel: async (taskID, ...rest) => at(taskID).cancel(taskID, ...rest),
    cancelBatch: async (batchID, parentSessionID, ...rest) =>
      at(parentSessionID).cancelBatch(batchID, parentSessionID, ...rest),
    stopSubagent: async (subagentID) => at(subagentID).stopSubagent(subagentID),
    adopt: async (sessionID) => at(sessionID).adopt(sessionID),
    clear: async (taskID, ...rest) => at(taskID).clear(taskID, ...rest),
    clearBatch: async (batchID, parentSessionID, ...rest) =>
      at(parentSessionID).clearBatch(batchID, parentSessionID, ...rest),
    restore: async (taskID) => at(taskID).restore(taskID),
    output: async (taskID, ...rest) => at(taskID).output(taskID, ...rest),
    answer: async (request, answer) => at(request.sessionID).answer(request, answer),
  };
}
