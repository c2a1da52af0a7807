import type { ToolCall, ToolReply } from "../bridge/tool-call.ts";
import { DECLARATIONS } from "../tools/declarations.ts";
import { declareTool } from "./declare-tool.ts";
import { forward } from "./forward.ts";
import type { CallContext, CallResult, PluginInput, PluginTool } from "./opencode.ts";
import { readOptions } from "./options.ts";

/** The OpenCode plugin: gives agents the tools and has each call carried out by the VS Code window of their folder. */
export default {
  id: "asyncagents",

  async server(
    input: PluginInput,
    options: unknown,
  ): Promise<{ readonly tool: Readonly<Record<string, PluginTool>> }> {
    const { stateFolder, patience } = readOptions(options);

    async function carryOut(call: ToolCall, context: CallContext): Promise<CallResult> {
      const ask = (permitted: readonly string[]): Promise<ToolReply> =>
        forward(
          { ...call, permitted: [...permitted] },
          {
            stateFolder,
            directory: context.directory,
            server: input.serverUrl,
            patience,
            signal: context.abort,
            onWait: () => context.metadata({ title: "Waiting for VS Code…" }),
          },
        );
      let reply = await ask([]);
      if (reply.type === "ask") {
        const { agent } = reply;
        // As OpenCode's own tool asks for a subagent.
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

    return { tool: Object.fromEntries(DECLARATIONS.map((tool) => [tool.name, declareTool(tool, carryOut)])) };
  },
};
