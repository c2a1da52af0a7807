import type { ActiveSession } from "../engine/active-session.ts";
import type { TaskEngine } from "../engine/engine.ts";
import { checkedOut } from "../git/checked-out.ts";
import { FormerModes } from "../git/former-modes.ts";
import type { OpenCodeConnection } from "../opencode/connection.ts";
import type { PluginConfig } from "../opencode/plugin-config.ts";
import type { EngineCalls, FolderCalls } from "../rpc/contract.ts";
import { methodNames } from "../rpc/methods.ts";
import type { Connecting } from "./connecting.ts";
import { search } from "./conversation/search.ts";
import { inWords } from "./request-words.ts";
import { planRevert } from "./revert-plan.ts";
import type { SavedFile, UserSaves } from "./user-saves.ts";
import { readImage } from "./workspace-image.ts";

export interface FolderParts {
  readonly directory: string;
  readonly saves: UserSaves;
  readonly tellSaved: (file: SavedFile) => void;
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  readonly connection: OpenCodeConnection;
  readonly connecting: Connecting;
  readonly plugin: () => PluginConfig;
}

/** The calls that windows can make in a folder: those of the engine, and those that other parts handle. */
export function createFolderCalls({
  directory,
  saves,
  tellSaved,
  engine,
  session,
  connection,
  connecting,
  plugin,
}: FolderParts): FolderCalls {
  const formerModes = new FormerModes(directory);
  const folderOf = (sessionID: string): string => engine.worktreeWork.directoryOf(sessionID) ?? directory;
  const others: Omit<FolderCalls, keyof EngineCalls> = {
    worktreeChanges: (...args) => engine.worktreeWork.changes(...args),
    removeWorktree: (...args) => engine.worktreeWork.remove(...args),
    remakeWorktree: (...args) => engine.worktreeWork.remake(...args),
    setupOutput: (...args) => engine.worktreeWork.setupOutput(...args),
    predictConflicts: () => engine.worktreeWork.predictConflicts(),
    planBringBack: (...args) => engine.worktreeWork.plan(...args),
    bringBack: (...args) => engine.worktreeWork.bringBack(...args),
    undoBringBack: (...args) => engine.worktreeWork.undoBringBack(...args),
    letAgentMerge: (...args) => engine.worktreeWork.letAgentMerge(...args),
    createBranch: (...args) => engine.worktreeWork.createBranch(...args),
    discardWorktree: (...args) => engine.worktreeWork.discard(...args),
    undoDiscard: (...args) => engine.worktreeWork.undoDiscard(...args),
    listWorktrees: () => engine.worktreeWork.list(),
    cleanUpWorktree: (...args) => engine.worktreeWork.cleanUp(...args),

    image: (id, path) => readImage(path, [folderOf(id), directory]),
    models: () => engine.catalog.models(),
    search: (id, query) => search(engine, id, query, folderOf(id)),
    changes: (id, since) => connection.server.changes(id, since, saves.all),
    fileSaved: async (path, at) => {
      // The file can belong to other folders as well, such as one in a worktree that has a window of its own.
      tellSaved({ path, at });
      await saves.noted();
      engine.worktreeWork.folderChanged();
    },
    explainRequest: async ({ id }) => {
      const request = engine.requests.find((one) => one.id === id);
      if (!request) return undefined;
      const call = await engine.toolCall(request);
      const isKnown = call !== undefined || request.type === "question" || request.call === undefined;
      return isKnown ? inWords(request, folderOf(request.sessionID), call) : undefined;
    },
    planRevert: (id, change, file) =>
      planRevert(engine, id, change, file, {
        formerMode: (path) => formerModes.of(folderOf(id), path),
        checkedOut: (path, text) => checkedOut(directory, folderOf(id), path, text),
      }),
    ensureSession: () => session.ensure(),

    join: () => connecting.join(),
    connect: (...args) => connecting.connect(...args),
    cancelConnecting: () => connecting.cancel(),
    refresh: () => connecting.refresh(),
    disconnect: () => connecting.disconnect(),
    stopServer: () => connecting.stopServer(),
    attachCommand: (...args) => connection.attachCommand(...args),

    previewCall: async (name, input, sessionID) => {
      const { previewOf } = await import("../tools/preview.ts");
      return previewOf(name, input, engine, sessionID);
    },
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
  const ofEngine = methodNames.filter((name): name is keyof EngineCalls => !(name in others));
  const bound = ofEngine.map((name) => [name, engine[name].bind(engine)]);
  return { ...others, ...(Object.fromEntries(bound) as EngineCalls) };
}
