import { runCancel } from "./cancel.ts";
import { runClear } from "./clear.ts";
import { runList } from "./list.ts";
import { runOutput } from "./output.ts";
import { runTask } from "./task.ts";
import { TOOL_NAMES, type ToolName, type ToolRun } from "./tool.ts";

/** What each tool does. */
export const RUNS: Readonly<Record<ToolName, ToolRun>> = {
  asyncagents_task: runTask,
  asyncagents_output: runOutput,
  asyncagents_cancel: runCancel,
  asyncagents_list: runList,
  asyncagents_clear: runClear,
};

/** Undefined: there is no such tool. */
export function runOf(name: string): ToolRun | undefined {
  const known = TOOL_NAMES.find((each) => each === name);
  return known && RUNS[known];
}
