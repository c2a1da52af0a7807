/** What each command does, by the last part of its ID in the manifest. */
export { installAgentTools, removeAgentTools } from "./agent-tools-commands.ts";
export { clear, clearFinished } from "./clear.ts";
export {
  launchOnChange,
  launchOnFile,
  launchOnProblem,
  launchOnSelection,
  launchTemplate,
} from "./editor-commands.ts";
export { fork, launch, launchFromView } from "./launch.ts";
export { launchBatch } from "./launch-wizard.ts";
export { clearFilter, filter, sort } from "./list-commands.ts";
export { launchPrompt, promptOptions, splitPrompt } from "./prompt-commands.ts";
export { revertAllChanges, revertChange } from "./revert.ts";
export { acceptAllChanges, acceptChange, closeChanges, openChange, showChanges } from "./review.ts";
export {
  cancelConnecting,
  connect,
  refresh,
  selectSession,
  showDaemonLog,
  showLog,
  stopServer,
} from "./session-commands.ts";
export { openWalkthrough, setUp } from "./set-up.ts";
export { stopBackgroundWork } from "./stop-background-work.ts";
export {
  adopt,
  answer,
  cancel,
  cancelBatch,
  copyResult,
  copyTaskId,
  openInTerminal,
  resume,
  retry,
  showOutput,
  showSelected,
} from "./task-commands.ts";
