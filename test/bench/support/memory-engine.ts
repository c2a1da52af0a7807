import { remembered } from "../../support/remembered.ts";
import { roughTokens } from "../../support/rough-tokens.ts";
import { TaskEngine } from "../../../src/engine/engine.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import type { TaskRecordDraft } from "../../../src/engine/task.ts";
import { realClock } from "../../support/engine.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { ENGINE_SETTINGS } from "../../support/engine-settings.ts";
import { noWorktrees } from "../../support/no-worktrees.ts";

/** Throws on warnings, because a benchmark that logs one doesn't measure what it should. */
export const strictLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message) => {
    throw new Error(message);
  },
  error: (message, error) => {
    throw new Error(message, { cause: error });
  },
};

export function memoryEngine(server: MemoryServer): TaskEngine {
  return new TaskEngine({
    server,
    clock: realClock,
    logger: strictLogger,
    random: Math.random,
    tombstones: remembered(),
    tokens: roughTokens,
    worktrees: noWorktrees,
    settings: () => ({
      ...ENGINE_SETTINGS,
      pollInterval: 5_000,
      stallWarning: 120_000,
    }),
  });
}

/** Adds a parent session with this many running tasks, each as the engine would have launched it. */
export async function addRunningTasks(
  server: MemoryServer,
  count: number,
): Promise<{ parent: string; tasks: readonly string[] }> {
  const { id: parent } = await server.createSession({ title: "Parent", agent: "build" });
  const tasks: string[] = [];
  for (let index = 0; index < count; index++) {
    const task = taskDraft(parent, index);
    const { agent, promptMessageID } = task;
    const { id } = await server.createSession({ title: task.description, parentID: parent, agent, task });
    await server.prompt(id, { messageID: promptMessageID, agent, parts: [{ text: "Look into it." }] });
    tasks.push(id);
  }
  return { parent, tasks };
}

function taskDraft(parentSessionID: string, index: number): TaskRecordDraft {
  const at = Date.now();
  return {
    revision: 1,
    description: `Look into how module ${index} handles its errors`,
    agent: "general",
    model: { providerID: "memory", modelID: "m" },
    parentSessionID,
    parentMessageID: "msg_0000000000000parent",
    launchedBy: "agent",
    batchID: "batch",
    toolCalls: 0,
    isForked: false,
    resumeCount: 0,
    status: "running",
    promptMessageID: `msg_${index.toString(16).padStart(12, "0")}prompt`,
    createdAt: at,
    startedAt: at,
    notice: { state: "none" },
  };
}
