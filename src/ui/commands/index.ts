import { SHOW_SELECTED } from "../tree/task-tree.ts";
import { installAgentTools, removeAgentTools } from "./agent-tools-commands.ts";
import { answer } from "./answer.ts";
import { launchBatch } from "./batch.ts";
import { clear, clearFinished } from "./clear.ts";
import type { CommandID } from "./command-ids.ts";
import type { Command } from "./command.ts";
import {
  launchOnChange,
  launchOnFile,
  launchOnFolder,
  launchOnProblem,
  launchOnSelection,
  launchTemplate,
} from "./editor-commands.ts";
import { fork, launchForked } from "./fork.ts";
import { launch, launchFromView } from "./launch.ts";
import { clearFilter, filter, sort } from "./list-commands.ts";
import { launchFromEditor, launchPrompt, promptOptions, splitPrompt } from "./prompt-commands.ts";
import { revertAllChanges, revertChange } from "./revert.ts";
import { acceptAllChanges, acceptChange, closeChanges, openChange, showChanges } from "./review.ts";
import {
  cancelConnecting,
  connect,
  refresh,
  selectSession,
  showDaemonLog,
  showLog,
  startServer,
  stopServer,
} from "./session-commands.ts";
import { openWalkthrough, setUp } from "./set-up.ts";
import { stopBackgroundWork } from "./stop-background-work.ts";
import {
  adopt,
  cancel,
  cancelBatch,
  copyResult,
  copyTaskId,
  resume,
  retry,
  sendNotice,
  showOutput,
  showSelected,
} from "./task-commands.ts";
import { openInTerminal } from "./terminal.ts";

/** What each command does. */
export const COMMANDS: Readonly<Record<CommandID, Command>> = {
  "asyncagents.launch": launch,
  "_asyncagents.launchFromView": launchFromView,
  "asyncagents.launchBatch": launchBatch,
  "asyncagents.launchForked": launchForked,
  "asyncagents.launchFromEditor": launchFromEditor,
  "asyncagents.launchOnSelection": launchOnSelection,
  "asyncagents.launchOnFile": launchOnFile,
  "asyncagents.launchOnFolder": launchOnFolder,
  "asyncagents.launchOnProblem": launchOnProblem,
  "asyncagents.launchOnChange": launchOnChange,
  "asyncagents.launchTemplate": launchTemplate,
  "asyncagents.launchPrompt": launchPrompt,
  "asyncagents.promptOptions": promptOptions,
  "_asyncagents.splitPrompt": splitPrompt,
  "asyncagents.showOutput": showOutput,
  [SHOW_SELECTED]: showSelected,
  "asyncagents.showChanges": showChanges,
  "_asyncagents.openChange": openChange,
  "asyncagents.acceptChange": acceptChange,
  "asyncagents.revertChange": revertChange,
  "asyncagents.acceptAllChanges": acceptAllChanges,
  "asyncagents.revertAllChanges": revertAllChanges,
  "asyncagents.closeChanges": closeChanges,
  "asyncagents.openInTerminal": openInTerminal,
  "asyncagents.resume": resume,
  "asyncagents.fork": fork,
  "asyncagents.retry": retry,
  "asyncagents.cancel": cancel,
  "asyncagents.cancelBatch": cancelBatch,
  "asyncagents.adopt": adopt,
  "asyncagents.answer": answer,
  "asyncagents.sendNotice": sendNotice,
  "asyncagents.clear": clear,
  "asyncagents.clearFinished": clearFinished,
  "asyncagents.copyTaskId": copyTaskId,
  "asyncagents.copyResult": copyResult,
  "asyncagents.filter": filter,
  "asyncagents.clearFilter": clearFilter,
  "asyncagents.sort": sort,
  "asyncagents.selectSession": selectSession,
  "asyncagents.connect": connect,
  "asyncagents.startServer": startServer,
  "asyncagents.cancelConnecting": cancelConnecting,
  "asyncagents.stopServer": stopServer,
  "asyncagents.refresh": refresh,
  "asyncagents.installAgentTools": installAgentTools,
  "asyncagents.removeAgentTools": removeAgentTools,
  "asyncagents.stopBackgroundWork": stopBackgroundWork,
  "asyncagents.showLog": showLog,
  "asyncagents.showDaemonLog": showDaemonLog,
  "asyncagents.setUp": setUp,
  "asyncagents.openWalkthrough": openWalkthrough,
};
