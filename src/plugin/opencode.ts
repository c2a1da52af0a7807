import type * as z from "zod/mini";

/* The parts of OpenCode's plugin interface that this plugin uses. */

export interface PluginInput {
  /** The folder that the plugin is loaded for. */
  readonly directory: string;
  /** The address of the server in which the plugin runs. */
  readonly serverUrl: URL;
}

/** OpenCode's configuration, merged from all sources. A plugin may change it before OpenCode uses it. */
interface OpenCodeConfig {
  subagent_depth?: number;
}

/** What a plugin contributes to OpenCode. */
export interface PluginHooks {
  config(config: OpenCodeConfig): void;
  readonly tool: Readonly<Record<string, PluginTool>>;
  /** Called before any tool runs, with the model's arguments. If it rejects, the call fails with that message. */
  "tool.execute.before"(
    call: { readonly tool: string; readonly sessionID: string },
    output: { readonly args: unknown },
  ): Promise<void>;
}

/** A model's call of a tool. */
export interface CallContext {
  readonly sessionID: string;
  readonly messageID: string;
  /** The agent that answers with this message. */
  readonly agent: string;
  readonly callID: string;
  /** The folder of the session. */
  readonly directory: string;
  /** Aborts with the turn. */
  readonly abort: AbortSignal;
  /** Resolves once the permission rules or the user allow this. Rejects otherwise. */
  ask(wanted: {
    readonly permission: string;
    readonly patterns: readonly string[];
    /** The patterns that the answer "always" allows from then on. */
    readonly always: readonly string[];
    readonly metadata: Readonly<Record<string, unknown>>;
  }): Promise<unknown>;
}

export interface PluginTool {
  readonly description: string;
  readonly args: Readonly<Record<string, z.ZodMiniType>>;
  /** `args` come from the model, unchecked. The model reads the messages of thrown errors. */
  execute(args: unknown, context: CallContext): Promise<CallResult>;
}

export interface CallResult {
  readonly title: string;
  readonly output: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}
