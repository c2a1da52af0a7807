import * as z from "zod/mini";
import type { ToolDeclaration } from "./tool.ts";

/** The input of a tool as a JSON schema. */
export function toolInputSchema({ input }: ToolDeclaration): Readonly<Record<string, unknown>> {
  const schema: Record<string, unknown> = { ...z.toJSONSchema(z.object(input), { io: "input" }) };
  delete schema["$schema"];
  return schema;
}
