import { invalidArgument, messageOf, Refusal } from "../engine/errors.ts";
import type { Task } from "../engine/task.ts";
import { oneLine } from "./plain-text.ts";
import { uniqueShortIDs } from "./short-ids.ts";
import type { TargetContext } from "./tool.ts";
import type { ToolInput } from "./tool-input.ts";

/* What tools act on: the tasks of the caller's session, except cleared ones. */

const NAME_LENGTH = 80;
/** How many tasks a sentence names at most. */
const MOST_NAMED = 20;

/** The caller's task with this ID, or a unique prefix or suffix of it. Throws a {@link Refusal} if there is none. */
export function findTask({ known, caller }: TargetContext, reference: string): Task {
  const task = known.find(reference, caller.sessionID);
  if (task.clearedAt === undefined) return task;
  throw new Refusal("unknown-task", `Task ${reference} was cleared: it is no longer on the list.`);
}

/** The task or batch to act on, if specified. Throws a {@link Refusal} if both are. */
export function readTarget(input: ToolInput): {
  readonly taskID: string | undefined;
  readonly batchID: string | undefined;
} {
  const taskID = input.id("task_id");
  const batchID = input.id("batch_id");
  if (taskID !== undefined && batchID !== undefined)
    throw invalidArgument('Give either "task_id" or "batch_id", not both.');
  return { taskID, batchID };
}

/** Returns a function for short IDs that are unique among the caller's tasks and the given ones. */
export function shortIDs({ known, caller }: TargetContext, tasks: readonly Task[]): (task: Task) => string {
  const ids = uniqueShortIDs([...known.list(caller.sessionID, true), ...tasks]);
  return ({ id }) => ids.get(id) ?? id;
}

/** `1 task`, `2 tasks`, … */
export function countTasks(count: number): string {
  return count === 1 ? "1 task" : `${count} tasks`;
}

/** Names tasks in a sentence: `a1B2c3 "Fix the tests", …`. */
export function nameTasks(tasks: readonly Task[], idOf: (task: Task) => string): string {
  return enumerate(tasks.map((task) => `${idOf(task)} "${oneLine(task.description, NAME_LENGTH)}"`));
}

export interface Outcome {
  /** The tasks after the command. */
  readonly done: readonly Task[];
  readonly failed: readonly { readonly task: Task; readonly error: unknown }[];
}

/** Applies a command to all tasks at once. If it fails for all of them, rejects with the first error. */
export async function actOnEach(
  tasks: readonly Task[],
  act: (task: Task) => Promise<Task>,
): Promise<Outcome> {
  const results = await Promise.all(
    tasks.map((task) =>
      act(task).then(
        (done) => ({ done }),
        (error: unknown) => ({ task, error }),
      ),
    ),
  );
  const done = results.flatMap((result) => ("done" in result ? [result.done] : []));
  const failed = results.flatMap((result) => ("error" in result ? [result] : []));
  const [first] = failed;
  if (first && done.length === 0) throw first.error;
  return { done, failed };
}

/** A sentence about the tasks for which the command failed, and why. Empty if there are none. */
export function nameFailed(what: string, { failed }: Outcome, idOf: (task: Task) => string): string {
  return failed.length === 0
    ? ""
    : `Not ${what}: ${enumerate(failed.map(({ task, error }) => `${idOf(task)} (${messageOf(error)})`))}.`;
}

function enumerate(names: readonly string[]): string {
  const rest = names.length - MOST_NAMED;
  return rest > 0 ? `${names.slice(0, MOST_NAMED).join(", ")} and ${rest} more` : names.join(", ");
}
