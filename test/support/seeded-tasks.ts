import { freshID } from "../../src/engine/ids.ts";
import type { TaskRecordDraft } from "../../src/engine/task.ts";
import { encodeRecord, RECORD_KEY } from "../../src/opencode/record-codec.ts";
import type { OpenCodeServer } from "./opencode.ts";

type Server = Pick<OpenCodeServer, "fetch">;

export interface SeededTask extends Partial<TaskRecordDraft> {
  readonly description: string;
  readonly parentSessionID: string;
  /** Starts the task with this prompt, like a launch; without it, only the record determines the status. */
  readonly prompt?: string;
}

/** Creates a task as the extension would have left it; by default a completed one. */
export async function seedTask(server: Server, seeded: SeededTask): Promise<string> {
  const { prompt, ...facts } = seeded;
  const at = Date.now();
  const record: TaskRecordDraft = {
    revision: 1,
    agent: "general",
    launchedBy: "agent",
    batchID: `batch-${Math.random()}`,
    isForked: false,
    resumeCount: 0,
    status: prompt === undefined ? "completed" : "running",
    toolCalls: 0,
    promptMessageID: freshID("msg", at, Math.random),
    createdAt: at,
    startedAt: at,
    ...(prompt === undefined && { endedAt: at }),
    notice: { state: "none" },
    ...facts,
  };
  const { description, parentSessionID, agent, promptMessageID } = record;
  const metadata = { [RECORD_KEY]: encodeRecord(record) };
  const id = await post(server, "/session", {
    title: description,
    parentID: parentSessionID,
    agent,
    metadata,
  });
  if (prompt !== undefined)
    await post(server, `/session/${id}/prompt_async`, {
      messageID: promptMessageID,
      agent,
      parts: [{ type: "text", text: prompt }],
    });
  return id;
}

/** Like {@link seedTask} for many tasks; the IDs are in the order of the tasks. */
export async function seedTasks(server: Server, tasks: readonly SeededTask[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let at = 0; at < tasks.length; at += AT_ONCE)
    ids.push(...(await Promise.all(tasks.slice(at, at + AT_ONCE).map((task) => seedTask(server, task)))));
  return ids;
}

/** The number of concurrent requests. */
const AT_ONCE = 25;

async function post(server: Server, path: string, body: unknown): Promise<string> {
  const response = await server.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? "" : ((await response.json()) as { id: string }).id;
}
