import type * as z from "zod/mini";

/* What this plugin uses of the interface that OpenCode gives to plugins. */

export interface PluginInput {
  /** The folder that it is loaded for. */
  readonly directory: string;
  /** Where the server listens that the plugin runs in. */
  readonly serverUrl: URL;
}

/** OpenCode's configuration, merged from all places. A plugin may change it before OpenCode uses it. */
interface OpenCodeConfig {
  subagent_depth?: number;
}

/** What a plugin adds to OpenCode. */
export interface PluginHooks {
  config(config: OpenCodeConfig): void;
  readonly tool: Readonly<Record<string, PluginTool>>;
  /** Before any tool runs, with the arguments that the model sent. Where it rejects, the call fails with that message. */
  "tool.execute.before"(
    call: { readonly tool: string; readonly sessionID: string },
    output: { readonly args: unknown },
  ): Promise<void>;
}

/** The call of a tool by a model. */
export interface CallContext {
  readonly sessionID: string;
  readonly messageID: string;
  readonly callID: string;
  /** The folder of the session. */
  readonly directory: string;
  /** Aborts with the turn. */
  readonly abort: AbortSignal;
  /** Shows users what the call does meanwhile. */
  metadata(shown: { readonly title: string }): unknown;
  /** Resolves once the permissions, or the user they ask, allow this. Rejects where they do not. */
  ask(wanted: {
    readonly permission: string;
    readonly patterns: readonly string[];
    /** What the answer "always" allows from then on. */
    readonly always: readonly string[];
    readonly metadata: Readonly<Record<string, unknown>>;
  }): Promise<unknown>;
}

export interface PluginTool {
  readonly description: string;
  readonly args: Readonly<Record<string, z.ZodMiniType>>;
  /** `args` is what the model sent, unchecked. The model reads the message of an error that is thrown. */
  execute(args: unknown, context: CallContext): Promise<CallResult>;
}

export interface CallResult {
  readonly title: string;
  readonly output: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}
