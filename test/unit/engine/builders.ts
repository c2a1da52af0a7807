import type { AssistantMessageInfo, Message, Part } from "../../../src/engine/server-model.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";

export const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** A running task's record with these facts. */
export function record(facts: Partial<TaskRecord> = {}): TaskRecord {
  return {
    id: "ses_task",
    revision: 1,
    description: "A task",
    agent: "general",
    parentSessionID: "ses_parent",
    launchedBy: "person",
    isForked: false,
    batchID: "bat_1",
    toolCalls: 0,
    resumeCount: 0,
    status: "running",
    promptMessageID: "msg_prompt",
    createdAt: 1_000,
    startedAt: 1_000,
    notice: { state: "none" },
    ...facts,
  };
}

export function prompt(id = "msg_prompt"): Message {
  const info = { role: "user", id, sessionID: "ses_task", created: 1_000, agent: "general" } as const;
  return { info, parts: [{ ...textPart("Do it."), messageID: id }] };
}

export function answer(facts: Partial<AssistantMessageInfo> = {}, parts: readonly Part[] = []): Message {
  return {
    info: {
      role: "assistant",
      id: "msg_answer",
      sessionID: "ses_task",
      parentID: "msg_prompt",
      created: 1_100,
      agent: "general",
      model: { providerID: "fake", modelID: "m" },
      cost: 0,
      tokens: NO_TOKENS,
      summary: false,
      ...facts,
    },
    parts,
  };
}

const place = { sessionID: "ses_task", messageID: "msg_answer" };

export function textPart(text: string, facts: { id?: string; synthetic?: boolean; end?: number } = {}): Part {
  return { ...place, id: "prt_text", type: "text", text, synthetic: false, start: 1, ...facts };
}

export function toolPart(
  id: string,
  tool: string,
  status: "pending" | "running" | "completed" | "error",
  facts: { readonly error?: string; readonly refused?: "by-user" } = {},
): Part {
  const input = {};
  const state =
    status === "pending"
      ? ({ status, input } as const)
      : status === "running"
        ? ({ status, input, start: 1 } as const)
        : status === "completed"
          ? ({ status, input, output: "", title: `${tool} done`, start: 1, end: 2 } as const)
          : ({ status, input, error: "failed", start: 1, end: 2, ...facts } as const);
  return { ...place, id, type: "tool", tool, callID: `call_${id}`, state };
}
