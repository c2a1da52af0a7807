import type * as z from "zod/mini";
import type { Caller, TaskEngine } from "../engine/engine.ts";
import type { CancelSignal } from "../engine/event.ts";
import type { TaskCommands } from "../engine/task-commands.ts";

/** Who calls a tool, and what it may act on. */
export interface ToolCaller {
  /** The session that the call comes from: its tasks are the ones that the tools know. */
  readonly sessionID: string;
  /** The message that made the call. */
  readonly messageID?: string | undefined;
  /** The same when a call is made again because its answer was lost: then nothing is done twice. */
  readonly callID?: string | undefined;
  readonly by: Caller;
  /** The agents that the user let the caller launch, where its permissions ask. */
  readonly permitted?: readonly string[] | undefined;
  /** How long ago the call was first made, in milliseconds. */
  readonly waitedMs?: number | undefined;
}

/** What tools read of tasks, where they are carried out. */
export type KnownTasks = Pick<TaskEngine, "list" | "find" | "batch" | "unreadable" | "pendingRequests">;

export interface ToolContext {
  readonly caller: ToolCaller;
  readonly known: KnownTasks;
  readonly commands: TaskCommands;
  /** The caller no longer wants the answer. */
  readonly signal: CancelSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** What decides which tasks a call is about. */
export type TargetContext = Pick<ToolContext, "caller" | "known">;

export interface ToolResult {
  /** A few words for users: what the call did. */
  readonly title: string;
  /** Plain text for the model. */
  readonly text: string;
  /** Kept with the call in the conversation, for programs. */
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

/** What is told of a tool to those who may call it. */
export interface ToolDeclaration {
  readonly name: ToolName;
  /** A few words for users. */
  readonly title: string;
  /** For models: when to use it, what comes back, what not to do. */
  readonly description: string;
  /** The fields of its input, each with a description for models. */
  readonly input: Readonly<Record<string, z.ZodMiniType>>;
}

/**
 * Carries a call out. `input` is what a model sent, unchecked. Rejects with a `Refusal` whose message is one clear
 * sentence for the model, or with a `ServerFailure`; then nothing was changed.
 */
export type ToolRun = (input: unknown, context: ToolContext) => Promise<ToolResult>;

/** One tool, whoever calls it. */
export interface Tool extends ToolDeclaration {
  readonly run: ToolRun;
}
