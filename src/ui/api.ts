import type * as vscode from "vscode";
import type { TaskChange } from "../engine/registry.ts";
import type { RequestAnswer, SessionChanges } from "../engine/server-model.ts";
import type { Task } from "../engine/task.ts";
import type { OutputOptions, TaskOutput } from "../engine/waiting.ts";
import type { ReviewContext, ServerContext } from "./commands/command.ts";
import type { SubjectKind } from "./commands/editor-commands.ts";
import type { LaunchArguments } from "./commands/launch.ts";
import type { RevertResult } from "./commands/review.ts";
import { connectedFolder, requireFolder } from "./folders/require-folder.ts";
import type { WindowSession } from "./mirror/window-session.ts";

/**
 * What other extensions get from `activate()`. It asks the user nothing, connects where need be, and rejects with an English
 * sentence what cannot be. Task IDs may be given as any unique prefix or suffix.
 */
export interface AsyncAgentsApi {
  readonly apiVersion: 1;
  /** Resolves once servers that run already for the folders there are were looked for, and joined. */
  ready(): Promise<void>;
  readonly tasks: {
    /** The tasks of a session, by default the active one of the current folder, oldest first. */
    list(parentSessionID?: string): readonly Task[];
    get(taskID: string): Task | undefined;
    launch(input: LaunchArguments): Promise<Task>;
    /**
     * Launches on files, a `Location`, problems of a file or what changed since the last commit, as the commands
     * `launchOn…` do; by default on what the active editor has of it.
     */
    launchOn(
      kind: SubjectKind,
      input: LaunchArguments,
      place?: vscode.Location | vscode.Uri | readonly vscode.Uri[],
      problems?: readonly vscode.Diagnostic[],
    ): Promise<Task>;
    resume(taskID: string, prompt: string): Promise<Task>;
    /** A new task with the same prompt, after an error or a cancel. */
    retry(taskID: string): Promise<Task>;
    /** A new task that carries on from the conversation of a task, a subagent or a session. */
    fork(id: string, prompt: string, options?: Omit<LaunchArguments, "prompt" | "folder">): Promise<Task>;
    /** Makes a task of a subagent that others launched. */
    adopt(subagentID: string): Promise<Task>;
    /** At once, or with `block` when the task has ended or `timeout` (seconds, by default 30, at most 600) is up. */
    output(taskID: string, options?: OutputOptions): Promise<TaskOutput>;
    /** Resolves to the task when it has ended, or as it is after `timeoutMs`; undefined: it is gone. */
    wait(
      taskID: string,
      options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
    ): Promise<Task | undefined>;
    /** Answers the permission or question that a task waits for, the oldest unless `requestID` names one. */
    answer(taskID: string, answer: RequestAnswer, requestID?: string): Promise<void>;
    cancel(taskID: string): Promise<Task>;
    /** By default of the active session. */
    cancelBatch(batchID: string, parentSessionID?: string): Promise<readonly Task[]>;
    stopSubagent(subagentID: string): Promise<void>;
    clear(taskID: string, options?: { readonly cancelRunning?: boolean }): Promise<Task>;
    readonly onDidChange: vscode.Event<TaskChange>;
  };
  /** What tasks changed. Paths are absolute or relative to the workspace; by default all that is left to review. */
  readonly changes: {
    read(taskID: string): Promise<SessionChanges>;
    /** Resolves to the paths of what was accepted. */
    accept(taskID: string, paths?: readonly string[]): Promise<readonly string[]>;
    /** As far as that harms nobody else's work. */
    revert(taskID: string, paths?: readonly string[]): Promise<RevertResult>;
  };
  readonly session: {
    /** The ID of the active session of the current folder; undefined where there is none. */
    readonly active: string | undefined;
    /** Undefined follows the conversation that was written in last. */
    select(sessionID: string | undefined): void;
    readonly onDidChange: vscode.Event<string | undefined>;
  };
  readonly server: {
    connect(): Promise<void>;
    /** Ends the server of the current folder, and what works in it. */
    stop(): Promise<void>;
    /**
     * Ends the work of this user in these folders, by their paths, in whichever windows they are open. Resolves to those,
     * by their real paths, in which there was something to end.
     */
    stopBackgroundWork(folders: readonly string[]): Promise<readonly string[]>;
  };
  /** The tools for agents in OpenCode's configuration. Resolves to the path of its file; undefined: there is none. */
  readonly agentTools: {
    install(scope: "project" | "user"): Promise<string | undefined>;
    remove(scope: "project" | "user"): Promise<string | undefined>;
  };
}

export function createApi(
  context: ReviewContext & Pick<ServerContext, "daemon">,
  ready: Promise<void>,
  taskChanges: vscode.Event<TaskChange>,
  sessionChanges: vscode.Event<string | undefined>,
): AsyncAgentsApi {
  const { known, folders, tasks } = context;
  const session = (): WindowSession | undefined => folders.current?.session;
  const programs = async () => (await import("./later.ts")).forPrograms;
  /** The tasks of a folder are known once it is connected. */
  const at = async <T>(id: string, run: () => Promise<T>): Promise<T> => {
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
      launch: async (input) => (await programs()).launchTask(context, input),
      launchOn: async (kind, input, ...given) => (await programs()).launchOn(context, kind, input, given),
      resume: (id, prompt) => at(id, () => tasks.resume(id, prompt)),
      retry: (id) => at(id, () => tasks.retry(id)),
      fork: (id, prompt, options) =>
        at(id, async () => (await programs()).forkTask(context, id, { ...options, prompt })),
      adopt: (id) => at(id, () => tasks.adopt(id)),
      output: (id, options) => at(id, () => tasks.output(id, options)),
      wait: async (id, { timeoutMs, signal } = {}) =>
        (await known.wait([id], { timeout: timeoutMs, signal }))[0],
      answer: (id, ...rest) => at(id, async () => (await programs()).sendAnswer(context, id, ...rest)),
      cancel: (id) => at(id, () => tasks.cancel(id)),
      cancelBatch: async (batchID, parentSessionID = session()?.id) =>
        tasks.cancelBatch(batchID, parentSessionID),
      stopSubagent: (id) => at(id, () => tasks.stopSubagent(id)),
      clear: (id, options) => at(id, () => tasks.clear(id, options)),
      onDidChange: taskChanges,
    },
    changes: {
      read: (id) => at(id, async () => (await programs()).readChanges(context, id)),
      accept: (id, paths) => at(id, async () => (await programs()).acceptChanges(context, id, paths)),
      revert: (id, paths) => at(id, async () => (await programs()).revertChanges(context, id, paths)),
    },
    session: {
      get active() {
        return session()?.id;
      },
      select: (sessionID) => session()?.select(sessionID),
      onDidChange: sessionChanges,
    },
    server: {
      connect: async () => void (await connectedFolder(folders)),
      stop: async () => requireFolder(folders).connector.stopServer(),
      stopBackgroundWork: async (paths) => (await programs()).stopBackgroundWork(context, paths),
    },
    agentTools: {
      install: async (scope) => (await programs()).setAgentTools(context, "install", scope),
      remove: async (scope) => (await programs()).setAgentTools(context, "remove", scope),
    },
  };
}
