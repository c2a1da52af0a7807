import type * as z from "zod/mini";
import type { Caller, TaskEngine } from "../engine/engine.ts";
import type { TaskCommands } from "../engine/task-commands.ts";

/** The caller of a tool, which determines what it may act on. */
export interface ToolCaller {
  /** The session that makes the call. The tools only know its tasks. */
  readonly sessionID: string;
  /** The message that made the call. */
  readonly messageID?: string | undefined;
  /** The agent that made the call, if that is known. */
  readonly agent?: string | undefined;
  /** Stays the same when the call is repeated because its answer was lost, so that nothing is done twice. */
  readonly callID?: string | undefined;
  readonly by: Caller;
  /** The agents that the user permitted the caller to launch. */
  readonly permitted?: readonly string[] | undefined;
  /** How long ago the call was first made, in milliseconds. */
  readonly waitedMs?: number | undefined;
}

/** The engine's data that tools read. */
export type KnownTasks = Pick<
  TaskEngine,
  "get" | "list" | "cleared" | "find" | "batch" | "descendantsOf" | "unreadable" | "pendingRequests"
>;

export interface ToolContext {
  readonly caller: ToolCaller;
  readonly known: KnownTasks;
  readonly commands: TaskCommands;
  /** Aborts when the caller no longer wants the answer. */
  readonly signal: AbortSignal;
  /** Returns the time in milliseconds since 1970. */
  readonly now: () => number;
}

/** What determines the tasks that a call is about. */
export type TargetContext = Pick<ToolContext, "caller" | "known">;

export interface ToolResult {
  /** A few words for users about what the call did. */
  readonly title: string;
  /** Plain text for the model. */
  readonly text: string;
  /** Stored with the call in the conversation, for programs. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export const TOOL_NAMES = [
  "asyncagents_task",
  "asyncagents_output",
  "asyncagents_cancel",
  "asyncagents_list",
  "asyncagents_clear",
] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

/** How a tool is described to its callers. */
export interface ToolDeclaration {
  readonly name: ToolName;
  /** A few words for users. */
  readonly title: string;
  /** For models: when to use it, what it returns, what to avoid. */
  readonly description: string;
  /** The fields of its input, each with a description for models. */
  readonly input: Readonly<Record<string, z.ZodMiniType>>;
}

/**
 * Executes a call. `input` comes from a model, unchecked. Rejects with a `Refusal` whose message is one clear sentence
 * for the model, or with a `ServerFailure`. In both cases nothing was changed.
 */
export type ToolRun = (input: unknown, context: ToolContext) => Promise<ToolResult>;
