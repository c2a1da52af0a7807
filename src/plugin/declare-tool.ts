import * as z from "zod/mini";
import type { ToolCall } from "../bridge/tool-call.ts";
import type { ToolDeclaration } from "../tools/tool.ts";
import type { CallContext, CallResult, PluginTool } from "./opencode.ts";

/** Declares the tool to OpenCode, which has `carryOut` do the work of each call. */
export function declareTool(
  { name, description, input }: ToolDeclaration,
  carryOut: (call: ToolCall, context: CallContext) => Promise<CallResult>,
): PluginTool {
  return {
    description,
    args: Object.fromEntries(Object.entries(input).map(([key, field]) => [key, selfDescribing(field)])),
    execute: (args, context) => {
      const { sessionID, messageID, callID } = context;
      return carryOut({ tool: name, input: args, sessionID, messageID, callID }, context);
    },
  };
}

/** OpenCode turns fields into JSON Schema with a zod of its own, which does not find what ours notes beside them. */
function selfDescribing(field: z.ZodMiniType): z.ZodMiniType {
  const json: Record<string, unknown> = { ...z.toJSONSchema(field, { io: "input" }) };
  delete json["$schema"];
  const copy = z.clone(field);
  copy._zod.toJSONSchema = () => json;
  return copy;
}
