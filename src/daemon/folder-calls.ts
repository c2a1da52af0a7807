import type { ActiveSession } from "../engine/active-session.ts";
import type { TaskEngine } from "../engine/engine.ts";
import type { OpenCodeConnection } from "../opencode/connection.ts";
import type { PluginConfig } from "../opencode/plugin-config.ts";
import type { FolderCalls } from "../rpc/contract.ts";
import type { Connecting } from "./connecting.ts";

export interface FolderParts {
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  readonly connection: OpenCodeConnection;
  readonly connecting: Connecting;
  readonly plugin: () => PluginConfig;
}

/** The calls that windows can make in a folder, each with the part that handles it. */
export function createFolderCalls({
  engine,
  session,
  connection,
  connecting,
  plugin,
}: FolderParts): FolderCalls {
  return {
    launch: (...args) => engine.launch(...args),
    resume: (...args) => engine.resume(...args),
    steer: (...args) => engine.steer(...args),
    withdraw: (...args) => engine.withdraw(...args),
    retry: (...args) => engine.retry(...args),
    continue: (...args) => engine.continue(...args),
    cancel: (...args) => engine.cancel(...args),
    cancelBatch: (...args) => engine.cancelBatch(...args),
    stopSubagent: (...args) => engine.stopSubagent(...args),
    adopt: (...args) => engine.adopt(...args),
    clear: (...args) => engine.clear(...args),
    clearBatch: (...args) => engine.clearBatch(...args),
    rename: (...args) => engine.rename(...args),
    restore: (...args) => engine.restore(...args),
    output: (...args) => engine.output(...args),
    answer: (...args) => engine.answer(...args),

    agents: (...args) => engine.agents(...args),
    takenSince: (...args) => engine.takenSince(...args),
    lastAnswer: (...args) => engine.lastAnswer(...args),
    toolInput: (...args) => engine.toolInput(...args),
    previewFork: (...args) => engine.previewFork(...args),
    forkStarts: (...args) => engine.forkStarts(...args),
    search: (...args) => engine.search(...args),
    worktreeChanges: (...args) => engine.worktreeChanges(...args),
    removeWorktree: (...args) => engine.removeWorktree(...args),
    remakeWorktree: (...args) => engine.remakeWorktree(...args),
    setupOutput: (...args) => engine.setupOutput(...args),
    predictConflicts: () => engine.worktreeWork.predictConflicts(),
    planBringBack: (...args) => engine.worktreeWork.plan(...args),
    bringBack: (...args) => engine.worktreeWork.bringBack(...args),
    undoBringBack: (...args) => engine.worktreeWork.undoBringBack(...args),
    letAgentMerge: (...args) => engine.worktreeWork.letAgentMerge(...args),
    createBranch: (...args) => engine.worktreeWork.createBranch(...args),
    discardWorktree: (...args) => engine.worktreeWork.discard(...args),
    undoDiscard: (...args) => engine.worktreeWork.undoDiscard(...args),
    listWorktrees: () => engine.worktreeWork.list(),
    cleanUpWorktree: (...args) => engine.worktreeWork.remove(...args),

    models: () => engine.catalog.models(),
    changes: (...args) => connection.server.changes(...args),
    ensureSession: () => session.ensure(),

    join: () => connecting.join(),
    connect: (...args) => connecting.connect(...args),
    cancelConnecting: () => connecting.cancel(),
    refresh: () => connecting.refresh(),
    disconnect: () => connecting.disconnect(),
    stopServer: () => connecting.stopServer(),
    attachCommand: (...args) => connection.attachCommand(...args),

    callTool: async (name, input, sessionID, signal) => {
      const { runOf } = await import("../tools/runs.ts");
      const caller = { sessionID, by: "person" as const };
      const context = { caller, known: engine, commands: engine, signal, now: Date.now };
      const { text } = await runOf(name)(input, context);
      return text;
    },
    planAgentTools: (...args) => plugin().plan(...args),
    applyAgentTools: (change) => plugin().apply(change),
  };
}
