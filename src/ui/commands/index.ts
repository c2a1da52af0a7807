/** All commands, by the last part of their IDs in the manifest. */
export { configureAgentTools } from "./set-up.ts";
export { launchOn, launchTemplate } from "./editor-commands.ts";
export { collectDiagnostics } from "./diagnostics.ts";
export { fork, launch, launchBatch, launchFromView } from "./launch-wizard.ts";
export {
  clearFilter,
  filter,
  markAllRead,
  showActive,
  showCleared,
  showNext,
  showOverview,
} from "./list-commands.ts";
export { launchPrompt, promptOptions, splitPrompt } from "./editor-commands.ts";
export {
  acceptAllChanges,
  acceptChange,
  closeChanges,
  compareChanges,
  openChange,
  revertAllChanges,
  revertChange,
  showChanges,
} from "./review.ts";
export {
  adopt,
  answer,
  cancel,
  clear,
  clearFinished,
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
export { searchOutputs } from "./search-outputs.ts";
export { continueTask as continue, sendMessage } from "./steering.ts";
export {
  cancelConnecting,
  connect,
  selectSession,
  showLog,
  stopBackgroundWork,
  stopServer,
} from "./server-commands.ts";
export { deleteTask as delete, restore } from "./archive.ts";
export { allowSetup, openSetupOutput } from "./worktree-setup.ts";
export { explainOpenCode2, openWalkthrough, setUp } from "./set-up.ts";
export { bringBack } from "../worktrees/bring-back.ts";
export { cleanUpWorktrees, createBranch, discardWorktree } from "../worktrees/endings.ts";
export { copyWorktreePath, openWorktree, openWorktreeTerminal, remakeWorktree } from "../worktrees/places.ts";
