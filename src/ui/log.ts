import type * as vscode from "vscode";
import { messageOf } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";

/** Writes to the editor's log channel, which adds the time and honours the user's log level. */
export function channelLogger(channel: vscode.LogOutputChannel): Logger {
  return {
    debug: (message) => channel.debug(message),
    info: (message) => channel.info(message),
    warn: (message) => channel.warn(message),
    error: (message, error) => channel.error(error === undefined ? message : `${message} ${detail(error)}`),
  };
}

function detail(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
}
