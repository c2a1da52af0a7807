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
import { folderOf, TreeNode } from "../tree/nodes.ts";
import type { PromptEditors } from "../prompt-editor/prompt-editors.ts";
import type { Settings } from "../settings.ts";
import type { LaunchMemory } from "./launch-memory.ts";

/** What commands work on. */
export interface CommandContext {
  /** What there is one of for each folder: sessions, connections, agents. */
  readonly folders: Folders;
  /** What is known of the tasks of all folders. */
  readonly known: AllTasks;
  /** What changes them; carried out by whichever window writes. */
  readonly tasks: TaskCommands;
  readonly panels: OutputPanels;
  readonly promptEditors: PromptEditors;
  readonly memory: LaunchMemory;
  /** The window's; a folder has its own. */
  readonly settings: Settings;
  readonly logger: Logger;
  /** Opens a text as a read-only document; the name's extension tells the language. */
  readonly openText: (name: string, text: string) => Promise<void>;
  /** The review of what a task changed. */
  readonly review: () => Promise<Review>;
  readonly showLog: () => void;
  /** What works for this user in all folders. */
  readonly daemon: () => Promise<Pick<DaemonClient, "isStarted" | "status" | "stop" | "logFile">>;
  /** How the tree lists the tasks. */
  readonly list: ListOptions;
  /** The task or subagent whose row was clicked last. */
  readonly clickedID: () => Promise<string | undefined>;
  /** Brings a task into sight in the tree. */
  readonly reveal: (taskID: string, options?: { readonly focus: boolean }) => void;
  /** Where OpenCode is on this machine; rejects with a `ConnectionError` where it is not found. */
  readonly findExecutable: () => Promise<string>;
  readonly firstSteps: FirstSteps;
}

/** What launching works on. */
export interface LaunchContext extends CommandContext {
  /** Where the agents are to work: it stays the same from the first question to the last, whatever becomes the current one. */
  readonly folder: Folder;
}

/** Undefined as a result of a command that asks: the person changed their mind. */
export interface Command {
  /** Whether a row of the tree can be its argument; to others the editor's title bar hands the focused row as well. */
  readonly isAboutTask?: boolean;
  run(context: CommandContext, ...args: readonly unknown[]): Promise<unknown>;
}

/**
 * Registers commands with the editor. What fails is shown to the person who ran it from the palette, a menu or the
 * tree; a program that passed arguments gets the rejection instead.
 * @param load what they do; asked for when one is run
 */
export function registerCommands<ID extends string>(
  context: CommandContext,
  ids: readonly ID[],
  load: () => Promise<Readonly<Record<ID, Command>>>,
): vscode.Disposable {
  return vscode.Disposable.from(
    ...ids.map((id) =>
      vscode.commands.registerCommand(id, async (...args: unknown[]) => {
        try {
          const [{ [id]: command }] = await Promise.all([load(), context.folders.opened]);
          context.folders.use(folderOf(context.folders, args[0]));
          const isForMenu = !command.isAboutTask && !isGiven(args[0]);
          return await command.run(context, ...(isForMenu ? [] : args));
        } catch (error) {
          if (isFromCode(args)) throw error;
          void showError(error, context.logger);
          return undefined;
        }
      }),
    ),
  );
}

/** Whether a program passed arguments, and not the editor a row, or a file of its own: that goes without a prompt. */
export function isFromCode([first, ...rest]: readonly unknown[]): boolean {
  return isGiven(first) && (!(first instanceof vscode.Uri) || rest.some(hasPrompt));
}

export function hasPrompt(value: unknown): value is object {
  return typeof value === "object" && value !== null && "prompt" in value;
}

function isGiven(argument: unknown): boolean {
  return argument !== undefined && argument !== null && !(argument instanceof TreeNode);
}

/** Whether a program said that what runs may be cancelled. */
export function isAgreed(options: unknown): boolean {
  return (
    typeof options === "object" &&
    options !== null &&
    "cancelRunning" in options &&
    options.cancelRunning === true
  );
}
