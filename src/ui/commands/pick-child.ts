import type { Child } from "../../engine/subagent.ts";
import { TaskNode } from "../tree/task-tree.ts";
import type { CommandContext } from "./command.ts";
import { pickTask, type PickOptions } from "./pick-task.ts";

/** The task or the subagent of others that a command is about: as `pickTask`, which knows of tasks alone. */
export async function pickChild(
  context: CommandContext,
  argument: unknown,
  options: PickOptions,
): Promise<Child | undefined> {
  const id = argument instanceof TaskNode ? argument.taskID : argument;
  const child = typeof id === "string" ? context.engine.child(id) : undefined;
  return child ?? pickTask(context, argument, options);
}
