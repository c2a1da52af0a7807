import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { openWindow, type EngineWindow } from "../../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../../support/opencode.ts";
import { startScriptedModel } from "../../support/scripted-model.ts";
import { until } from "../../support/wait.ts";

export interface Bench {
  readonly server: OpenCodeServer;
  /** Like the engine of a window with the default settings. */
  readonly window: EngineWindow;
  stop(): Promise<void>;
}

/** Starts a real server whose model answers immediately, and opens a window on it. */
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

/** Makes one call, as a client with only the server's address would; returns the JSON of the answer. */
export async function post<T = unknown>(server: OpenCodeServer, path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  const response = await server.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/**
 * The minimal way to start an agent in the background: a child session and its prompt. Resolves to the session's ID.
 */
export async function launchBare(server: OpenCodeServer, parentID: string): Promise<string> {
  const { id } = await post<{ id: string }>(server, "/session", { title: "Bare", parentID });
  await post(server, `/session/${id}/prompt_async`, { agent: "general", parts: [prompt] });
  return id;
}

/** Creates a session with a user's message, like a task's parent; nothing runs in it. */
export async function createParent(server: OpenCodeServer): Promise<string> {
  const { id } = await post<{ id: string }>(server, "/session", { title: "Parent" });
  const parts = [{ type: "text", text: "Have everything looked into." }];
  const prompt = { messageID: messageIn(id), agent: "build", noReply: true, parts };
  await post(server, `/session/${id}/prompt_async`, prompt);
  return id;
}

const prompt = { type: "text", text: "Look into it." };

export const work = { description: "Ours", prompt: prompt.text, agent: "general" } as const;

/** What an agent that answers the message of {@link createParent} launches. */
export function launchFrom(parentSessionID: string): LaunchInput {
  const parentMessageID = messageIn(parentSessionID);
  return { ...work, parentSessionID, parentMessageID, callingAgent: "build", launchedBy: "agent" };
}

/** The ID of the only message in a parent session. */
function messageIn(sessionID: string): string {
  return sessionID.replace(/^ses/, "msg");
}

/** Resolves as soon as a parent has been notified of the end of this many tasks; sends no requests. */
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

/**
 * Waits until nothing runs on the server and the parent has been notified, so that the next measurement starts clean.
 */
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
