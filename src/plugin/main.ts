import * as z from "zod/mini";
import type { ToolAnswer, ToolCall } from "../bridge/tool-call.ts";
import { filesToWrite } from "../opencode/file-tools.ts";
import { DECLARATIONS } from "../tools/declarations.ts";
import type { ToolDeclaration } from "../tools/tool.ts";
import { beginWrite } from "./begin-write.ts";
import { forward } from "./forward.ts";
import { guardServer } from "./guard-server.ts";
import type { CallContext, CallResult, PluginHooks, PluginInput, PluginTool } from "./opencode.ts";
import { readOptions } from "./options.ts";
import { setup } from "./setup.ts";

/**
 * The OpenCode plugin: gives agents the tools, and forwards each call to the daemon that serves their folder. OpenCode 1
 * calls `server`, OpenCode 2 `setup`.
 */
export default {
  id: "asyncagents",
  setup,

  async server(input: PluginInput, options: unknown): Promise<PluginHooks> {
    const {
      stateFolder,
      patience,
      writePatienceMs: patienceMs,
      subagentDepth,
      tools = true,
      graceMs,
    } = readOptions(options);
    if (graceMs !== undefined) void guardServer(stateFolder, graceMs, input.directory);

    async function carryOut(call: ToolCall, context: CallContext): Promise<CallResult> {
      const ask = (permitted: readonly string[]): Promise<ToolAnswer> =>
        forward(
          { ...call, permitted: [...permitted] },
          {
            stateFolder,
            directory: context.directory,
            server: input.serverUrl,
            patience,
            signal: context.abort,
            // Servers that the extension starts do this themselves, in `guardServer`.
            reopens: graceMs === undefined,
          },
        );
      let reply = await ask([]);
      if (reply.type === "ask") {
        const { agent } = reply;
        // Asks in the same way as OpenCode's own subagent tool.
        await context.ask({
          permission: "task",
          patterns: [agent],
          always: [agent],
          metadata: { subagent_type: agent },
        });
        reply = await ask([agent]);
      }
      if (reply.type !== "result") throw new Error(reply.message);
      return { title: reply.title, output: reply.text, metadata: reply.metadata ?? {} };
    }

    return {
      config(config) {
        // Set here because a value in the server's initial configuration would override the user's.
        if (subagentDepth !== undefined) config.subagent_depth ??= subagentDepth;
      },
      tool: tools
        ? Object.fromEntries(DECLARATIONS.map((tool) => [tool.name, declareTool(tool, carryOut)]))
        : {},
      async "tool.execute.before"({ tool, sessionID }, { args }) {
        const { directory, serverUrl: server } = input;
        const paths = filesToWrite(tool, args, directory);
        if (paths.length === 0) return;
        const place = { stateFolder, directory, server, patienceMs };
        const refusal = await beginWrite({ sessionID, paths: [...paths] }, place);
        if (refusal !== undefined) throw new Error(refusal);
      },
    };
  },
};

/** Declares a tool to OpenCode. `carryOut` executes its calls. */
function declareTool(
  { name, description, input }: ToolDeclaration,
  carryOut: (call: ToolCall, context: CallContext) => Promise<CallResult>,
): PluginTool {
  return {
    description,
    args: Object.fromEntries(Object.entries(input).map(([key, field]) => [key, selfDescribing(field)])),
    execute: (args, context) => {
      const { sessionID, messageID, agent, callID } = context;
      return carryOut({ tool: name, input: args, sessionID, messageID, agent, callID }, context);
    },
  };
}

/** Attaches a field's JSON Schema, because OpenCode's own copy of zod does not find the descriptions in ours. */
function selfDescribing(field: z.ZodMiniType): z.ZodMiniType {
  const json: Record<string, unknown> = { ...z.toJSONSchema(field, { io: "input" }) };
  delete json["$schema"];
  const copy = z.clone(field);
  copy._zod.toJSONSchema = () => json;
  return copy;
}
