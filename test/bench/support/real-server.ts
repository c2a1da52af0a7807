import { openWindow, type EngineWindow } from "../../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../../support/opencode.ts";
import { startScriptedModel } from "../../support/scripted-model.ts";
import { until } from "../../support/wait.ts";

export interface Bench {
  readonly server: OpenCodeServer;
  /** As an editor's window has it, with the default settings. */
  readonly window: EngineWindow;
  stop(): Promise<void>;
}

/** A real server whose model answers at once, with a window on it. */
export async function startBench(): Promise<Bench> {
  const model = await startScriptedModel({ fallback: () => ({ text: "Done." }) });
  const server = await startOpenCode({ model });
  const window = await openWindow(server, { pollInterval: 5_000, stallWarning: 120_000 });
  return {
    server,
    window,
    async stop() {
      window.dispose();
      await server.stop();
      await model.stop();
    },
  };
}

/** What someone does who has nothing but the server's address: one call, its answer as JSON. */
export async function post<T = unknown>(server: OpenCodeServer, path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  const response = await server.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** The least that starts an agent in the background: a child session and its prompt. Resolves to its ID. */
export async function launchBare(server: OpenCodeServer, parentID: string): Promise<string> {
  const { id } = await post<{ id: string }>(server, "/session", { title: "Bare", parentID });
  await post(server, `/session/${id}/prompt_async`, { agent: "general", parts: [prompt] });
  return id;
}

/** A session in which a user has written, as the parent of a task is; nothing runs in it. */
export async function createParent(server: OpenCodeServer): Promise<string> {
  const { id } = await post<{ id: string }>(server, "/session", { title: "Parent" });
  const parts = [{ type: "text", text: "Have everything looked into." }];
  await post(server, `/session/${id}/prompt_async`, { agent: "build", noReply: true, parts });
  return id;
}

const prompt = { type: "text", text: "Look into it." };

export const launchInput = {
  description: "Ours",
  prompt: prompt.text,
  agent: "general",
  parentMessageID: "msg_00000000000000000000000000",
  launchedBy: "agent",
} as const;

/** Resolves as soon as a parent was told of the end of so many tasks; asks the server nothing. */
export function told({ engine }: EngineWindow, parent: string, count: number): Promise<void> {
  const isTold = (): boolean =>
    engine.list(parent).filter(({ notice }) => notice.state === "delivered").length >= count;
  return new Promise((resolve) => {
    const subscription = engine.onDidChange(() => {
      if (!isTold()) return;
      subscription.dispose();
      resolve();
    });
  });
}

/** Waits until nothing runs on the server and every parent knows, so that the next measurement starts afresh. */
export async function quiet({ server, window }: Omit<Bench, "stop">, parent: string): Promise<void> {
  const isQuiet = async (): Promise<boolean> => {
    const isTold = window.engine
      .list(parent)
      .every(({ notice: { state } }) => state === "delivered" || state === "skipped");
    const statuses = (await (await server.fetch("/session/status")).json()) as object;
    return isTold && Object.keys(statuses).length === 0;
  };
  await until("the server to be quiet", isQuiet, 120_000);
}
