import { Refusal } from "../engine/errors.ts";
import { runCancel } from "./cancel.ts";
import { runClear } from "./clear.ts";
import { runList } from "./list.ts";
import { runOutput } from "./output.ts";
import { oneLine } from "./plain-text.ts";
import { runTask } from "./task.ts";
import { TOOL_NAMES, type ToolName, type ToolRun } from "./tool.ts";

/** How much of an unknown tool's name is quoted, in characters. */
const MAX_NAME = 60;

/** What each tool does. */
const RUNS: Readonly<Record<ToolName, ToolRun>> = {
  asyncagents_task: runTask,
  asyncagents_output: runOutput,
  asyncagents_cancel: runCancel,
  asyncagents_list: runList,
  asyncagents_clear: runClear,
};

export function runOf(name: string): ToolRun {
  return RUNS[requireName(name)];
}

/** Throws a {@link Refusal} if there is no such tool. */
export function requireName(name: string): ToolName {
  const known = TOOL_NAMES.find((each) => each === name);
  if (known) return known;
  throw new Refusal(
    "unavailable",
    `This version of Async Agents has no tool ${oneLine(name, MAX_NAME)}; restart the OpenCode server.`,
  );
}
