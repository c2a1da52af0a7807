import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ToolCall } from "../../src/bridge/tool-call.ts";
import { ToolEndpoint, type ToolEndpointOptions } from "../../src/bridge/tool-endpoint.ts";
import type { EngineSettings, TaskEngine } from "../../src/engine/engine.ts";
import { freshID } from "../../src/engine/ids.ts";
import { NOTICE_MARK } from "../../src/engine/asked.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { RECORD_KEY } from "../../src/opencode/record-codec.ts";
import { runOf } from "../../src/tools/runs.ts";
import type { ToolName, ToolResult } from "../../src/tools/tool.ts";
import { openWindow, realClock, type EngineWindow, type EngineWindowOptions } from "./engine.ts";
import { startOpenCode, type OpenCodeOptions, type OpenCodeServer } from "./opencode.ts";
import { script, type ScriptStep } from "./script.ts";
import { tempDir } from "./temp.ts";
import { until } from "./wait.ts";

/** A real server whose agents have the tools. */
export interface AgentServer extends OpenCodeServer {
  /** The folder in which its plugin looks for windows. */
  readonly stateFolder: string;
}

export interface AgentServerOptions extends OpenCodeOptions {
  /** Options of the plugin in addition to its state folder. */
  readonly plugin?: {
    readonly patienceMs?: number;
    readonly reloadPatienceMs?: number;
    readonly writePatienceMs?: number;
  };
}

export async function startAgentServer({
  plugin,
  config,
  ...options
}: AgentServerOptions): Promise<AgentServer> {
  const stateFolder = tempDir("state");
  const server = await startOpenCode({
    ...options,
    config: { ...config, plugin: [[await pluginUrl(), { ...plugin, stateFolder }]] },
  });
  return Object.assign(server, { stateFolder });
}

/** The same server for another folder. */
export function inFolder(server: AgentServer, directory: string): AgentServer {
  return {
    ...server,
    directory,
    fetch(path, init = {}) {
      const headers = new Headers(init.headers);
      headers.set("x-opencode-directory", directory);
      return server.fetch(path, { ...init, headers });
    },
  };
}

let bundle: Promise<string> | undefined;

/** The address of the plugin for OpenCode's configuration; the plugin is built once. */
export async function pluginUrl(): Promise<string> {
  return pathToFileURL(await (bundle ??= buildPlugin())).href;
}

async function buildPlugin(): Promise<string> {
  const { build } = await import("esbuild");
  const outfile = join(tempDir("plugin"), "opencode-plugin.js");
  const entryPoints = [join(import.meta.dirname, "../../src/plugin/main.ts")];
  await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm", logLevel: "error" });
  return outfile;
}

/** A tool call as received by a window. */
interface ReceivedCall extends ToolCall {
  /** Aborts when no one waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** The engine of a window, along with the tools that it runs for agents. */
export interface AgentWindow extends EngineWindow {
  /** The received calls, oldest first. */
  readonly calls: readonly ReceivedCall[];
  /** Closes the endpoint and opens a new one, as reloading the window does. */
  reopen(): Promise<void>;
  /** Closes only the endpoint. */
  close(): void;
}

/** @param carryOut runs the tool */
export type CallHandler = (
  call: ToolCall,
  signal: AbortSignal,
  carryOut: () => Promise<ToolResult>,
) => Promise<ToolResult>;

export interface AgentWindowOptions {
  readonly settings?: Partial<EngineSettings>;
  /** Wraps the server for the engine. */
  readonly between?: EngineWindowOptions["between"];
  /** The engine's clock. */
  readonly clock?: Clock;
  /** Called in place of the tools. */
  readonly handle?: CallHandler;
  /** Overrides what the window announces about itself. */
  readonly entry?: Partial<Pick<ToolEndpointOptions, "directories" | "server">>;
}

/** Opens a window on the server and its folder; agents can reach it when this resolves. */
export async function openAgentWindow(
  server: AgentServer,
  {
    settings,
    between,
    clock,
    handle = (_call, _signal, carryOut) => carryOut(),
    entry,
  }: AgentWindowOptions = {},
): Promise<AgentWindow> {
  const window = await openWindow(server, settings, { between, clock });
  const calls: ReceivedCall[] = [];
  let endpoint: ToolEndpoint | undefined;

  const directories = (): readonly string[] => [server.directory, ...window.engine.worktrees.directories()];
  window.engine.onDidChange(({ before, after }) => {
    if (before?.worktree?.directory !== after?.worktree?.directory)
      void endpoint?.setDirectories(directories());
  });

  const isOurs = async (sessionID: string): Promise<boolean> =>
    (await window.connection.server.ownerOf(sessionID)) === "this";

  async function reopen(): Promise<void> {
    endpoint?.dispose();
    endpoint = new ToolEndpoint({
      stateFolder: server.stateFolder,
      directories: directories(),
      server: server.url,
      handle: async (call, signal) => {
        if (call.onlyIfOurs && !(await isOurs(call.sessionID))) return undefined;
        calls.push({ ...call, signal });
        return handle(call, signal, () => carryOut(window.engine, call, signal));
      },
      beginWrite: async ({ sessionID, paths, onlyIfOurs }) => {
        if (onlyIfOurs && !(await isOurs(sessionID))) return false;
        window.engine.beginWrite(sessionID, paths);
        return true;
      },
      clock: realClock,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      ...entry,
    });
    await endpoint.open();
  }

  await reopen();
  return {
    ...window,
    calls,
    reopen,
    close: () => endpoint?.dispose(),
    dispose() {
      endpoint?.dispose();
      window.dispose();
    },
  };
}

async function carryOut(
  engine: TaskEngine,
  { tool: name, input, ...caller }: ToolCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  return runOf(name)(input, {
    caller: { ...caller, by: "agent" },
    known: engine,
    commands: engine,
    signal,
    now: () => Date.now(),
  });
}

/** A tool call as stored in the conversation. */
export interface MadeCall {
  readonly tool: string;
  readonly callID: string;
  /** The message that contains the call. */
  readonly messageID: string;
  readonly status: "pending" | "running" | "completed" | "error";
  readonly input: unknown;
  readonly title: string | undefined;
  /** What the model receives: the output or the error; empty while the call runs. */
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** When the server started and ended the call, in milliseconds since 1970; missing until then. */
  readonly time: { readonly start?: number; readonly end?: number };
}

/** A turn of an agent that follows a script. */
export interface ScriptedTurn {
  /** The calls made so far, in order. */
  calls(): Promise<readonly MadeCall[]>;
  /** Waits until the turn has ended in any way, and resolves to all calls. */
  ended(timeoutMs?: number): Promise<readonly MadeCall[]>;
  abort(): Promise<void>;
}

/** Starts a turn of the session's agent with these steps ({@link ScriptStep}). Resolves once the prompt is accepted. */
export async function startTurn(
  server: OpenCodeServer,
  sessionID: string,
  steps: readonly ScriptStep[],
  agent = "build",
): Promise<ScriptedTurn> {
  const promptID = freshID("msg", Date.now(), Math.random);
  await server.fetch(`/session/${sessionID}/prompt_async`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      agent,
      messageID: promptID,
      parts: [{ type: "text", text: script(steps) }],
    }),
  });

  async function answers(): Promise<readonly StoredMessage[]> {
    const messages = (await read(server, `/session/${sessionID}/message`)) as StoredMessage[];
    const prompt = messages.findIndex(({ info }) => info.id === promptID);
    return prompt < 0 ? [] : messages.slice(prompt + 1);
  }

  /** The messages without notices at their end that need no answer: those of a user's tasks. */
  async function untilAnswer(messages: readonly StoredMessage[]): Promise<readonly StoredMessage[]> {
    const noticeOf = messages.at(-1)?.parts.find(({ metadata }) => metadata?.[NOTICE_MARK])?.metadata;
    if (!noticeOf) return messages;
    const task = (await read(server, `/session/${noticeOf[NOTICE_MARK] as string}`)) as StoredTask;
    const isAnswered = task.metadata?.[RECORD_KEY]?.launchedBy !== "person";
    return isAnswered ? messages : untilAnswer(messages.slice(0, -1));
  }

  const calls = async (): Promise<readonly MadeCall[]> => (await answers()).flatMap(madeCalls);

  return {
    calls,
    async ended(timeoutMs = 50_000) {
      let seen: readonly unknown[] = [];
      const isOver = async (): Promise<boolean> => {
        const messages = await answers();
        const statuses = (await read(server, "/session/status")) as object;
        seen = [statuses, ...messages];
        const last = (await untilAnswer(messages)).at(-1)?.info;
        return !(sessionID in statuses) && last?.role === "assistant" && last.time.completed !== undefined;
      };
      await until("the end of the turn", isOver, timeoutMs).catch((error: Error) => {
        throw new Error(`${error.message}: ${JSON.stringify(seen)}`, { cause: error });
      });
      return calls();
    },
    async abort() {
      await server.fetch(`/session/${sessionID}/abort`, { method: "POST" });
    },
  };
}

/** Makes the session's agent make these calls in one message, and waits until its turn has ended. */
export async function callTools(
  server: OpenCodeServer,
  sessionID: string,
  tools: NonNullable<ScriptStep["tools"]>,
  agent?: string,
): Promise<readonly MadeCall[]> {
  const turn = await startTurn(server, sessionID, [{ tools }, { text: "Seen." }], agent);
  return turn.ended();
}

/** Like {@link callTools}, with one call. */
export async function callTool(
  server: OpenCodeServer,
  sessionID: string,
  name: ToolName,
  args: Readonly<Record<string, unknown>> = {},
  agent?: string,
): Promise<MadeCall> {
  const [call] = await callTools(server, sessionID, [{ name, args }], agent);
  if (!call) {
    const last = await read(server, `/session/${sessionID}/message?limit=4`);
    throw new Error(`The agent made no call of ${name}, but: ${JSON.stringify(last)}`);
  }
  return call;
}

interface StoredMessage {
  readonly info: {
    readonly id: string;
    readonly role: string;
    readonly time: { readonly completed?: number };
  };
  readonly parts: readonly ((StoredToolPart | { readonly type: "text" }) & {
    readonly metadata?: Readonly<Record<string, unknown>>;
  })[];
}

interface StoredTask {
  readonly metadata?: Readonly<Record<string, { readonly launchedBy?: string } | undefined>>;
}

interface StoredToolPart extends Pick<MadeCall, "tool" | "callID" | "messageID"> {
  readonly type: "tool";
  readonly state: Pick<MadeCall, "status" | "input"> &
    Partial<Pick<MadeCall, "title" | "metadata" | "time">> & {
      readonly output?: string;
      readonly error?: string;
    };
}

function madeCalls({ parts }: StoredMessage): readonly MadeCall[] {
  return parts
    .filter((part) => part.type === "tool")
    .map(({ tool, callID, messageID, state }) => ({
      tool,
      callID,
      messageID,
      status: state.status,
      input: state.input,
      title: state.title,
      text: state.output ?? state.error ?? "",
      metadata: state.metadata ?? {},
      time: state.time ?? {},
    }));
}

async function read(server: OpenCodeServer, path: string): Promise<unknown> {
  return (await server.fetch(path)).json();
}
