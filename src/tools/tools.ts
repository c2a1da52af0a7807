import * as z from "zod/mini";
import { DECLARATIONS } from "./declarations.ts";
import { RUNS } from "./runs.ts";
import type { Tool, ToolDeclaration } from "./tool.ts";

/** All tools. */
export const TOOLS: readonly Tool[] = DECLARATIONS.map((declaration) => ({
  ...declaration,
  run: RUNS[declaration.name],
}));

/** The input of a tool as a JSON schema. */
export function toolInputSchema({ input }: ToolDeclaration): Readonly<Record<string, unknown>> {
  const schema: Record<string, unknown> = { ...z.toJSONSchema(z.object(input), { io: "input" }) };
  delete schema["$schema"];
  return schema;
}
