import type * as vscode from "vscode";
import type { TaskChange } from "../engine/registry.ts";
import type { Task } from "../engine/task.ts";
import type { OutputOptions, TaskOutput } from "../engine/waiting.ts";
import type { WindowSession } from "./mirror/window-session.ts";
import type { CommandContext } from "./commands/command.ts";
import { connectedFolder } from "./folders/connected-folder.ts";

/** What other extensions get from `activate()`. Task IDs may be given as any unique prefix or suffix. */
export interface AsyncAgentsApi {
  readonly apiVersion: 1;
  /** Resolves once servers that run already for the folders there are were looked for, and joined. */
  ready(): Promise<void>;
  readonly tasks: {
    /** The tasks of a session, by default the active one of the current folder, oldest first. */
    list(parentSessionID?: string): readonly Task[];
    get(taskID: string): Task | undefined;
    /**
     * Connects if need be. `model` is `provider/model`; `folder` is the path of one of the workspace, or its name there, by
     * default the current one: the one that the person used last.
     */
    launch(input: {
      readonly prompt: string;
      readonly description?: string;
      readonly agent?: string;
      readonly model?: string;
      readonly batch_id?: string;
      readonly folder?: string;
    }): Promise<Task>;
    resume(taskID: string, prompt: string): Promise<Task>;
    /** A new task that carries on from this one's conversation, as the same agent. */
    fork(taskID: string, prompt: string): Promise<Task>;
    /** At once, or with `block` when the task has ended or `timeout` (seconds, by default 30, at most 600) is up. */
    output(taskID: string, options?: OutputOptions): Promise<TaskOutput>;
    /** Resolves to the task when it has ended, or as it is after `timeoutMs`; undefined: it is gone. */
    wait(
      taskID: string,
      options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
    ): Promise<Task | undefined>;
    cancel(taskID: string): Promise<Task>;
    clear(taskID: string, options?: { readonly cancelRunning?: boolean }): Promise<Task>;
    readonly onDidChange: vscode.Event<TaskChange>;
  };
  readonly session: {
    /** The ID of the active session of the current folder; undefined where there is none. */
    readonly active: string | undefined;
    /** Undefined follows the conversation that was written in last. */
    select(sessionID: string | undefined): void;
    readonly onDidChange: vscode.Event<string | undefined>;
  };
}

export function createApi(
  context: CommandContext,
  ready: Promise<void>,
  taskChanges: vscode.Event<TaskChange>,
  sessionChanges: vscode.Event<string | undefined>,
): AsyncAgentsApi {
  const { known, folders, tasks } = context;
  const session = (): WindowSession | undefined => folders.current?.session;
  /** The tasks of a folder are known once it is connected. */
  const connected = async (taskID: string): Promise<void> => {
    await folders.opened;
    await connectedFolder(folders, known.folderOf(taskID));
  };
  return {
    apiVersion: 1,
    ready: () => ready,
    tasks: {
      list: (parentSessionID = session()?.id) =>
        parentSessionID === undefined ? [] : known.list(parentSessionID),
      get: (taskID) => {
        try {
          return known.find(taskID);
        } catch {
          return undefined;
        }
      },
      launch: async (input) => (await import("./commands/launch.ts")).launchTask(context, input),
      resume: async (taskID, prompt) => {
        await connected(taskID);
        return tasks.resume(taskID, prompt);
      },
      fork: async (taskID, prompt) => {
        await connected(taskID);
        return (await import("./commands/fork.ts")).forkTask(context, taskID, { prompt });
      },
      output: async (taskID, options) => {
        await connected(taskID);
        return tasks.output(taskID, options);
      },
      wait: async (taskID, { timeoutMs, signal } = {}) =>
        (await known.wait([taskID], { timeout: timeoutMs, signal }))[0],
      cancel: async (taskID) => {
        await connected(taskID);
        return tasks.cancel(taskID);
      },
      clear: async (taskID, options) => {
        await connected(taskID);
        return tasks.clear(taskID, options);
      },
      onDidChange: taskChanges,
    },
    session: {
      get active() {
        return session()?.id;
      },
      select: (sessionID) => session()?.select(sessionID),
      onDidChange: sessionChanges,
    },
  };
}
