import { remembered } from "./remembered.ts";
import { roughTokens } from "./rough-tokens.ts";
import { ActiveSession } from "../../src/engine/active-session.ts";
import { messageOf } from "../../src/engine/errors.ts";
import { TaskEngine, type EngineSettings } from "../../src/engine/engine.ts";
import type { AgentServer, Clock, Logger, TaskMemoryStore } from "../../src/engine/ports.ts";
import type { Task } from "../../src/engine/task.ts";
import type { TokenCounter } from "../../src/engine/token-counter.ts";
import { answerText } from "../../src/engine/turn.ts";
import { OpenCodeConnection, type ConnectionOptions } from "../../src/opencode/connection.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import type { OpenCodeServer } from "./opencode.ts";
import { until } from "./wait.ts";
import { ENGINE_SETTINGS } from "./engine-settings.ts";
import { FolderWorktrees } from "../../src/git/folder-worktrees.ts";

export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return { dispose: () => clearTimeout(timer) };
  },
};

/** The engine of a window, connected to a real server by address. */
export interface EngineWindow {
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  readonly connection: OpenCodeConnection;
  /** The log, one line per message. */
  readonly log: readonly string[];
  /** Ends the engine as closing or reloading the window does. */
  dispose(): void;
}

/** For connections to a server by address. */
export const noOwnServers: ConnectionOptions["ownServers"] = {
  search: (search) => search(),
  adopt: () => Promise.reject(new Error("No server may be started here.")),
  start: () => Promise.reject(new Error("No server may be started here.")),
  stop: () => Promise.reject(new Error("No server may be started here.")),
};

/** Replacements for real parts, and options of the window. */
export interface EngineWindowOptions {
  /** Wraps the server for the engine, to do what can't be provoked for real. */
  readonly between?: ((server: AgentServer) => AgentServer) | undefined;
  readonly clock?: Clock | undefined;
  /** The clock of the connection. */
  readonly connectionClock?: Clock | undefined;
  readonly tokens?: TokenCounter | undefined;
  readonly callTimeoutMs?: (() => number | undefined) | undefined;
  readonly tombstones?: TaskMemoryStore | undefined;
  /** The engine only receives events and ends no turns, because another engine does. */
  readonly followsOnly?: boolean | undefined;
}

/** Opens a window on the server and waits until it knows all tasks. */
export async function openWindow(
  server: Pick<OpenCodeServer, "url" | "password" | "directory" | "env">,
  settings: Partial<EngineSettings> = {},
  {
    between = (real) => real,
    clock = realClock,
    connectionClock = realClock,
    tokens = roughTokens,
    callTimeoutMs,
    tombstones = remembered(),
    followsOnly = false,
  }: EngineWindowOptions = {},
): Promise<EngineWindow> {
  const log: string[] = [];
  const note =
    (level: string) =>
    (message: string, error?: unknown): void =>
      void log.push(`${level} ${message}${error === undefined ? "" : ` ${messageOf(error)}`}`);
  const logger: Logger = {
    debug: note("debug"),
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
  };
  const connection = new OpenCodeConnection({
    directory: server.directory,
    settings: () => ({ url: server.url, path: undefined, startTimeoutMs: 60_000 }),
    password: async () => Promise.resolve(server.password),
    ownServers: noOwnServers,
    env: server.env,
    callTimeoutMs,
    events: new ServerEvents(connectionClock),
    clock: connectionClock,
    logger,
  });
  const engine = new TaskEngine({
    server: between(connection.server),
    clock,
    logger,
    random: Math.random,
    tombstones,
    tokens,
    worktrees: new FolderWorktrees(server.directory, () => process.env, logger),
    settings: () => ({
      ...ENGINE_SETTINGS,
      ...settings,
    }),
  });
  const session = new ActiveSession(engine, connection.server, logger);
  let synced = false;
  connection.onDidConnect(async () => {
    await engine.connect();
    await session.refresh();
    if (followsOnly) engine.disconnect();
    synced = true;
  });
  connection.onDidChangeState(({ kind }) => {
    if (kind !== "connected") engine.disconnect();
  });
  connection.setWatched(true);
  await connection.connect();
  await until("the first synchronisation", () => synced);
  return {
    engine,
    session,
    connection,
    log,
    dispose() {
      session.dispose();
      engine.dispose();
      connection.dispose();
    },
  };
}

/** Resolves to the task when it has ended. */
export async function ended(window: EngineWindow, taskID: string, timeoutMs = 45_000): Promise<Task> {
  const [task] = await window.engine.wait([taskID], { timeoutMs });
  if (!task || task.status === "running" || task.status === "resumed")
    throw new Error(
      `Task ${taskID} did not end within ${timeoutMs} ms: ${JSON.stringify(task)}\n${window.log.join("\n")}`,
    );
  return task;
}

/** Creates a session to launch tasks from. */
export async function createSession(
  server: Pick<OpenCodeServer, "fetch">,
  title = "Parent",
): Promise<string> {
  const response = await server.fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title }),
  });
  return ((await response.json()) as { id: string }).id;
}

interface StoredMessage {
  readonly info: { readonly id: string; readonly role: string; readonly agent?: string };
  readonly parts: readonly {
    readonly type: string;
    readonly text?: string;
    readonly synthetic?: boolean;
    readonly metadata?: Readonly<Record<string, unknown>>;
  }[];
}

/** The messages of a session as stored by the server. */
export async function storedMessages(
  server: Pick<OpenCodeServer, "fetch">,
  sessionID: string,
): Promise<readonly StoredMessage[]> {
  return (await (await server.fetch(`/session/${sessionID}/message`)).json()) as StoredMessage[];
}

/** The text of the prompt that began the task's current or last turn. */
export async function promptText(
  server: Pick<AgentServer, "message">,
  task: Pick<Task, "id" | "promptMessageID"> | undefined,
): Promise<string> {
  const message = task && (await server.message(task.id, task.promptMessageID));
  return message ? answerText(message) : "";
}

/** How often a task has ended. A lost follow-up ended too, though it doesn't count as a resume. */
export function endsOf({ spans = [] }: Task): number {
  return 1 + spans.filter(([what]) => what === "turn").length;
}

/** The notices in a session: the visible line and the hidden text of each. */
export async function notices(
  server: Pick<OpenCodeServer, "fetch">,
  sessionID: string,
): Promise<readonly { line: string; hidden: string }[]> {
  const messages = await storedMessages(server, sessionID);
  return (
    messages
      .filter(({ info, parts }) => info.role === "user" && parts.some(({ synthetic }) => synthetic))
      // The line is stored last.
      .filter(({ parts }) => parts.some(({ type, synthetic }) => type === "text" && !synthetic))
      .map(({ parts }) => ({
        line: parts.find(({ synthetic }) => !synthetic)?.text ?? "",
        hidden: parts.find(({ synthetic }) => synthetic)?.text ?? "",
      }))
  );
}
