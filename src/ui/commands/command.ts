import * as vscode from "vscode";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { Logger } from "../../engine/ports.ts";
import type { DaemonClient } from "../../rpc/daemon-client.ts";
import type { Review } from "../changes/review.ts";
import type { FirstSteps } from "../first-steps.ts";
import type { AllTasks } from "../folders/all-tasks.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import type { OutputPanels } from "../output/output-panels.ts";
import type { Overview } from "../output/overview.ts";
import { showError } from "../messages.ts";
import type { ListOptions } from "../tree/list-options.ts";
import type { Unread } from "../tree/unread.ts";
import type { PromptEditors } from "../prompt-editors.ts";
import type { Settings } from "../settings.ts";
import type { LaunchMemory } from "./launch-memory.ts";

/** What task commands work on. */
export interface TaskContext {
  /** The folders of the window, each with its session, connection and agents. */
  readonly folders: Folders;
  /** The known tasks of all folders. */
  readonly known: AllTasks;
  /** The commands that change tasks. */
  readonly tasks: TaskCommands;
  /** The sort order and filter of the tree. */
  readonly list: ListOptions;
  /** The results that the user has not opened yet. */
  readonly unread: Unread;
  /** The task or subagent in front of the user: that of the selected row, or of the active output panel. */
  readonly frontID: () => string | undefined;
  readonly logger: Logger;
}

/** What commands that ask for a prompt work on. */
export interface PromptContext extends TaskContext {
  readonly memory: LaunchMemory;
  readonly promptEditors: PromptEditors;
  /** Opens a text as a read-only document; the name's extension determines the language. */
  readonly openText: (name: string, text: string) => Promise<void>;
  /** Shows a row for what is being launched, until it is disposed of. */
  readonly showLaunching: (what: string, folder: Folder) => vscode.Disposable;
  /** Reveals a task in the tree. */
  readonly reveal: (taskID: string, options?: { readonly focus: boolean }) => void;
}

/** What launching works on. */
export interface LaunchContext extends PromptContext {
  /** Where the agents will work. Stays the same for all questions, even if another folder becomes current. */
  readonly folder: Folder;
}

/** What commands for a task's changes work on. */
export interface ReviewContext extends TaskContext {
  readonly review: () => Promise<Review>;
}

/** What commands for servers, the daemon and the setup work on. */
export interface ServerContext {
  readonly folders: Folders;
  /** The settings of the window; each folder has its own. */
  readonly settings: Settings;
  readonly logger: Logger;
  /** The daemon, which works for this user in all folders. */
  readonly daemon: DaemonClient;
  readonly extensionUri: vscode.Uri;
  readonly firstSteps: FirstSteps;
  readonly showLog: () => void;
}

/** What all commands work on; each command declares the part that it needs. */
export interface CommandContext extends PromptContext, ReviewContext, ServerContext {
  readonly panels: OutputPanels;
  readonly overview: Overview;
  /** The task or subagent whose row was clicked last. */
  readonly clickedID: () => Promise<string | undefined>;
}

/**
 * A command. Its arguments are what the editor passes (rows, files, places) or what a keybinding specifies; the command
 * asks for anything missing. Resolves to undefined if the user cancels.
 */
export type Command = (context: CommandContext, ...args: readonly unknown[]) => Promise<unknown>;

/** What is loaded when a command is run. */
interface Loaded {
  /** By the last part of their IDs. */
  readonly commands: Readonly<Record<string, Command>>;
  /** The folder that a row belongs to. */
  readonly folderOf: (folders: Folders, row: unknown) => Folder | undefined;
}

/**
 * Registers commands with the editor. Failures are shown, whoever ran the command.
 * @param opened resolves once the parts of the window that commands work on exist
 * @param load loads what commands need; called when one is run
 */
export function registerCommands(
  ids: readonly string[],
  opened: () => Promise<CommandContext>,
  load: () => Promise<Loaded>,
  logger: Logger,
): vscode.Disposable {
  return vscode.Disposable.from(
    ...ids.map((id) =>
      vscode.commands.registerCommand(id, async (...args: unknown[]) => {
        try {
          const [{ commands, folderOf }, context] = await Promise.all([load(), opened()]);
          await context.folders.opened;
          context.folders.use(folderOf(context.folders, args[0]));
          return await commands[id.slice(id.indexOf(".") + 1)]?.(context, ...args);
        } catch (error) {
          void showError(error, logger);
          return undefined;
        }
      }),
    ),
  );
}
