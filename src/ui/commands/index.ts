import { answer } from "./answer.ts";
import { cancelBatch, launchBatch } from "./batch.ts";
import type { Command } from "./command.ts";
import { launch } from "./launch.ts";
import { connect, refresh, selectSession, showLog, startServer, stopServer } from "./session-commands.ts";
import {
  cancel,
  clear,
  clearFinished,
  copyTaskId,
  resume,
  retry,
  sendNotice,
  showOutput,
  showSelected,
} from "./task-commands.ts";

/** Every command of the manifest, and those that only the product itself runs. */
export const COMMANDS: readonly Command[] = [
  launch,
  launchBatch,
  showOutput,
  showSelected,
  resume,
  retry,
  cancel,
  cancelBatch,
  answer,
  sendNotice,
  clear,
  clearFinished,
  copyTaskId,
  selectSession,
  connect,
  startServer,
  stopServer,
  refresh,
  showLog,
];
