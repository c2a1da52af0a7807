import * as vscode from "vscode";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { Logger } from "../../engine/ports.ts";
import type { DaemonClient } from "../../rpc/daemon-client.ts";
import type { Review } from "../changes/review.ts";
import type { FirstSteps } from "../first-steps.ts";
import type { AllTasks } from "../folders/all-tasks.ts";
import type { Folder } from "../folders/folder.ts";
import type { Folders } from "../folders/folders.ts";
import type { OutputPanels } from "../output/output-panels.ts";
import { showError } from "../human-error.ts";
import type { ListOptions } from "../tree/list-options.ts";
import { folderOf } from "../tree/nodes.ts";
import { SHOW_SELECTED } from "../tree/task-tree.ts";
import type { PromptEditors } from "../prompt-editor/prompt-editors.ts";
import type { Settings } from "../settings.ts";
import type { LaunchMemory } from "./launch-memory.ts";

/** What commands for tasks work on. */
export interface TaskContext {
  /** What there is one of for each folder: sessions, connections, agents. */
  readonly folders: Folders;
  /** What is known of the tasks of all folders. */
  readonly known: AllTasks;
  /** What changes them. */
  readonly tasks: TaskCommands;
  /** How the tree lists them. */
  readonly list: ListOptions;
  readonly logger: Logger;
}

/** What commands that ask for a prompt work on. */
export interface PromptContext extends TaskContext {
  readonly memory: LaunchMemory;
  readonly promptEditors: PromptEditors;
  /** Opens a text as a read-only document; the name's extension tells the language. */
  readonly openText: (name: string, text: string) => Promise<void>;
  /** Brings a task into sight in the tree. */
  readonly reveal: (taskID: string, options?: { readonly focus: boolean }) => void;
}

/** What launching works on. */
export interface LaunchContext extends PromptContext {
  /** Where the agents are to work: it stays the same from the first question to the last, whatever becomes the current one. */
  readonly folder: Folder;
}

/** What commands for the changes of a task work on. */
export interface ReviewContext extends TaskContext {
  readonly review: () => Promise<Review>;
}

/** What commands for servers, the daemon and the set-up work on. */
export interface ServerContext {
  readonly folders: Folders;
  /** The window's; a folder has its own. */
  readonly settings: Settings;
  readonly logger: Logger;
  /** What works for this user in all folders. */
  readonly daemon: () => Promise<Pick<DaemonClient, "isStarted" | "status" | "stop" | "logFile">>;
  /** Where OpenCode is on this machine; rejects with a `ConnectionError` where it is not found. */
  readonly findExecutable: () => Promise<string>;
  readonly firstSteps: FirstSteps;
  readonly showLog: () => void;
}

/** What all commands work on; each asks for the part that it needs. */
export interface CommandContext extends PromptContext, ReviewContext, ServerContext {
  readonly panels: OutputPanels;
  /** The task or subagent whose row was clicked last. */
  readonly clickedID: () => Promise<string | undefined>;
}

/**
 * What a command does. Its arguments are what the editor hands over (rows, files, places) or what a key binding names;
 * what is missing it asks for. It resolves to undefined where the user changed their mind.
 */
export type Command = (context: CommandContext, ...args: readonly unknown[]) => Promise<unknown>;

/** The commands that the product alone runs, beside those of the manifest. */
export const INTERNAL_COMMANDS: readonly string[] = [
  "_asyncagents.launchFromView",
  "_asyncagents.splitPrompt",
  "_asyncagents.openChange",
  SHOW_SELECTED,
];

/**
 * Registers commands with the editor. What fails is shown, whoever ran it.
 * @param load what they do, by the last part of their IDs; asked for when one is run
 */
export function registerCommands(
  context: CommandContext,
  ids: readonly string[],
  load: () => Promise<Readonly<Record<string, Command>>>,
): vscode.Disposable {
  return vscode.Disposable.from(
    ...ids.map((id) =>
      vscode.commands.registerCommand(id, async (...args: unknown[]) => {
        try {
          const [commands] = await Promise.all([load(), context.folders.opened]);
          context.folders.use(folderOf(context.folders, args[0]));
          return await commands[id.slice(id.indexOf(".") + 1)]?.(context, ...args);
        } catch (error) {
          void showError(error, context.logger);
          return undefined;
        }
      }),
    ),
  );
}
