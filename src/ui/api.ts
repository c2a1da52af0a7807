import type * as vscode from "vscode";
import type { TaskChange } from "../engine/registry.ts";
import type { RequestAnswer, SessionChanges } from "../engine/server-model.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { OutputOptions, TaskOutput } from "../engine/waiting.ts";
import type { CommandContext } from "./commands/command.ts";
import type * as forPrograms from "./commands/for-programs.ts";
import type { SubjectKind } from "./commands/editor-commands.ts";
import type { LaunchArguments } from "./commands/launching.ts";
import type { RevertResult } from "./commands/review.ts";
import { connectedFolder, requireFolder } from "./folders/folders.ts";
import type { WindowSession } from "./folders/window-session.ts";
import { loadLater } from "./load-later.ts";

/**
 * The API that `activate()` returns to other extensions. It never prompts the user, connects when necessary, and
 * rejects with an error in English. Task IDs may be given as any unique prefix or suffix.
 */
export interface AsyncAgentsApi {
  readonly apiVersion: 1;
  /**
   * Resolves when the extension has looked for servers already running for the open folders and has connected to them.
   */
  ready(): Promise<void>;
  readonly tasks: {
    /** The tasks of a session, oldest first; by default of the active session of the current folder. */
    list(parentSessionID?: string): readonly Task[];
    get(taskID: string): Task | undefined;
    launch(input: LaunchArguments): Promise<Task>;
    /**
     * Launches on files, a `Location`, problems of a file or uncommitted changes, like the command `asyncagents.launchOn`; by
     * default takes them from the active editor.
     */
    launchOn(
      kind: SubjectKind,
      input: LaunchArguments,
      place?: vscode.Location | vscode.Uri | readonly vscode.Uri[],
      problems?: readonly vscode.Diagnostic[],
    ): Promise<Task>;
    resume(taskID: string, prompt: string): Promise<Task>;
    /** Launches a new task with the prompt of a failed or cancelled one. */
    retry(taskID: string): Promise<Task>;
    /** Launches a new task that continues the conversation of a task, a subagent or a session. */
    fork(id: string, prompt: string, options?: Omit<LaunchArguments, "prompt" | "folder">): Promise<Task>;
    /** Makes a task of a subagent that was launched elsewhere. */
    adopt(subagentID: string): Promise<Task>;
    /**
     * Resolves at once; with `block`, when the task has ended or after `timeout` (seconds; default 30, at most 600).
     */
    output(taskID: string, options?: OutputOptions): Promise<TaskOutput>;
    /** Resolves with the task when it has ended or after `timeoutMs`; undefined if the task no longer exists. */
    wait(
      taskID: string,
      options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
    ): Promise<Task | undefined>;
    /** Answers a permission or question of a task: the one named by `requestID`, by default the oldest. */
    answer(taskID: string, answer: RequestAnswer, requestID?: string): Promise<void>;
    cancel(taskID: string): Promise<Task>;
    /** By default in the active session. */
    cancelBatch(batchID: string, parentSessionID?: string): Promise<readonly Task[]>;
    stopSubagent(subagentID: string): Promise<void>;
    clear(taskID: string, options?: { readonly cancelRunning?: boolean }): Promise<Task>;
    readonly onDidChange: vscode.Event<TaskChange>;
  };
  /**
   * The files that tasks changed. Paths are absolute or relative to the workspace; by default all files left to review.
   */
  readonly changes: {
    read(taskID: string): Promise<SessionChanges>;
    /** Resolves to the accepted paths. */
    accept(taskID: string, paths?: readonly string[]): Promise<readonly string[]>;
    /** Reverts only where neither other agents' work is lost nor what users saved in the editor. */
    revert(taskID: string, paths?: readonly string[]): Promise<RevertResult>;
  };
  readonly session: {
    /** The ID of the current folder's active session; undefined if there is none. */
    readonly active: string | undefined;
    /** With undefined, the active session is the one most recently written to. */
    select(sessionID: string | undefined): void;
    readonly onDidChange: vscode.Event<string | undefined>;
  };
  readonly server: {
    connect(): Promise<void>;
    /** Stops the server of the current folder and everything that runs in it. */
    stop(): Promise<void>;
    /**
     * Stops the user's background work in folders, given by path, whichever windows have them open. Resolves to the
     * real paths of the folders in which there was something to stop.
     */
    stopBackgroundWork(folders: readonly string[]): Promise<readonly string[]>;
  };
  /** The agent tools in OpenCode's configuration. Resolves to the path of its file; undefined if there is none. */
  readonly agentTools: {
    install(scope: "project" | "user"): Promise<string | undefined>;
    remove(scope: "project" | "user"): Promise<string | undefined>;
  };
}

/** What the API works on. */
export interface ApiParts extends Pick<CommandContext, "folders" | "known" | "tasks"> {
  /** Resolves once the other parts of the window exist. */
  readonly opened: () => Promise<CommandContext>;
  readonly ready: Promise<void>;
  readonly taskChanges: vscode.Event<TaskChange>;
  readonly sessionChanges: vscode.Event<string | undefined>;
}

export function createApi(parts: ApiParts): AsyncAgentsApi {
  const { folders, known, tasks, opened, ready, taskChanges, sessionChanges } = parts;
  const session = (): WindowSession | undefined => folders.current?.session;
  const programs = async <T>(
    run: (programs: typeof forPrograms, context: CommandContext) => Promise<T>,
  ): Promise<T> => {
    const [{ forPrograms }, context] = await Promise.all([loadLater(), opened()]);
    return run(forPrograms, context);
  };
  /** Runs once the folder is connected, because its tasks are unknown before. */
  const at = async <T>(id: string | undefined, run: () => Promise<T>): Promise<T> => {
    await opened();
    await folders.opened;
    await connectedFolder(folders, known.folderOf(id));
    return run();
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
      launch: (input) => programs(({ launchTask }, context) => launchTask(context, input)),
      launchOn: (kind, input, ...given) =>
        programs(({ launchOn }, context) => launchOn(context, kind, input, given)),
      resume: (id, prompt) => at(id, () => tasks.resume(id, prompt)),
      retry: (id) => at(id, () => tasks.retry(id)),
      fork: (id, prompt, options) =>
        at(id, () => programs(({ forkTask }, context) => forkTask(context, id, { ...options, prompt }))),
      adopt: (id) => at(id, () => tasks.adopt(id)),
      output: (id, options) => at(id, () => tasks.output(id, options)),
      wait: async (id, { timeoutMs, signal } = {}) => {
        await opened();
        await folders.opened;
        const wait = async (): Promise<Task | undefined> =>
          (await known.wait([id], { timeoutMs, signal }))[0];
        const task = known.get(id);
        return task && !isActive(task) ? wait() : at(id, wait);
      },
      answer: (id, ...rest) =>
        at(id, () => programs(({ sendAnswer }, context) => sendAnswer(context, id, ...rest))),
      cancel: (id) => at(id, () => tasks.cancel(id)),
      cancelBatch: (batchID, parentSessionID) =>
        // Without a session, it would be a batch of any.
        at(parentSessionID, () => tasks.cancelBatch(batchID, parentSessionID ?? session()?.id ?? "")),
      stopSubagent: (id) => at(id, () => tasks.stopSubagent(id)),
      clear: (id, options) => at(id, () => tasks.clear(id, options)),
      onDidChange: taskChanges,
    },
    changes: {
      read: (id) => at(id, () => programs(({ readChanges }, context) => readChanges(context, id))),
      accept: (id, paths) =>
        at(id, () => programs(({ acceptChanges }, context) => acceptChanges(context, id, paths))),
      revert: (id, paths) =>
        at(id, () => programs(({ revertChanges }, context) => revertChanges(context, id, paths))),
    },
    session: {
      get active() {
        return session()?.id;
      },
      select: (sessionID) => session()?.select(sessionID),
      onDidChange: sessionChanges,
    },
    server: {
      connect: async () => {
        await opened();
        await connectedFolder(folders);
      },
      stop: async () => {
        await opened();
        await folders.opened;
        await requireFolder(folders).connector.stopServer();
      },
      stopBackgroundWork: (paths) =>
        programs(({ stopBackgroundWork }, context) => stopBackgroundWork(context, paths)),
    },
    agentTools: {
      install: (scope) => programs(({ setAgentTools }, context) => setAgentTools(context, "install", scope)),
      remove: (scope) => programs(({ setAgentTools }, context) => setAgentTools(context, "remove", scope)),
    },
  };
}
