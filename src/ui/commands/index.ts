/** All commands, by the last part of their IDs in the manifest. */
export { configureAgentTools } from "./set-up.ts";
export { launchOn, launchTemplate } from "./editor-commands.ts";
export { fork, launch, launchBatch, launchFromView } from "./launch-wizard.ts";
export { clearFilter, filter, markAllRead, showActive, showNext, showOverview } from "./list-commands.ts";
export { launchPrompt, promptOptions, splitPrompt } from "./editor-commands.ts";
export {
  acceptChange,
  closeChanges,
  compareChanges,
  openChange,
  revertChange,
  showChanges,
} from "./review.ts";
export {
  adopt,
  answer,
  cancel,
  copyResult,
  copyTaskId,
  findInOutput,
  openInTerminal,
  rename,
  resume,
  retry,
  showOutput,
  showSelected,
} from "./row-commands.ts";
export { searchOutputs } from "./list-commands.ts";
export { continueTask as continue, sendMessage } from "./steering.ts";
export { selectSession, showLog, stopBackgroundWork, stopServer } from "./server-commands.ts";
export { clear, clearFinished, deleteTask as delete, restore } from "./clear-commands.ts";
export { connect, explainOpenCode2, openWalkthrough } from "./set-up.ts";
export { bringBack } from "../worktrees/bring-back.ts";
export { cleanUpWorktrees, createBranch, discardWorktree } from "../worktrees/worktree-commands.ts";
export { openWorktree } from "../worktrees/worktree-commands.ts";
