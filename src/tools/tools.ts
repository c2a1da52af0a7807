import { DECLARATIONS } from "./declarations.ts";
import { RUNS } from "./runs.ts";
import type { Tool } from "./tool.ts";

/** All tools. */
export const TOOLS: readonly Tool[] = DECLARATIONS.map((declaration) => ({
  ...declaration,
  run: RUNS[declaration.name],
}));
