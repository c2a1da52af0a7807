import { messageOf, Refusal } from "../engine/errors.ts";
import type { Task } from "../engine/task.ts";
import { oneLine } from "./plain-text.ts";
import { uniqueShortIDs } from "./short-ids.ts";
import type { TargetContext } from "./tool.ts";
import type { ToolInput } from "./tool-input.ts";

/* What callers act on: the tasks of their own session, without those that were cleared. */

const NAME_LENGTH = 80;
/** How many tasks a sentence names. */
const MOST_NAMED = 20;

/** The caller's task of this ID, or of a unique beginning or end of one. Throws a {@link Refusal} where there is none. */
export function findTask({ known, caller }: TargetContext, reference: string): Task {
  const task = known.find(reference, caller.sessionID);
  if (task.clearedAt === undefined) return task;
  throw new Refusal("unknown-task", `Task ${reference} was cleared: it is no longer on the list.`);
}

/** What to act on; neither: nothing in particular. Throws a {@link Refusal} where both are given. */
export function readTarget(input: ToolInput): {
  readonly taskID: string | undefined;
  readonly batchID: string | undefined;
} {
  const taskID = input.id("task_id");
  const batchID = input.id("batch_id");
  if (taskID !== undefined && batchID !== undefined)
    throw new Refusal("invalid-argument", 'Give either "task_id" or "batch_id", not both.');
  return { taskID, batchID };
}

/** Gives the short IDs by which the caller's tasks, these among them, can be told apart. */
export function shortIDs({ known, caller }: TargetContext, tasks: readonly Task[]): (task: Task) => string {
  const ids = uniqueShortIDs([...known.list(caller.sessionID), ...tasks]);
  return ({ id }) => ids.get(id) ?? id;
}

/** `1 task`, `2 tasks`, … */
export function countTasks(count: number): string {
  return count === 1 ? "1 task" : `${count} tasks`;
}

/** Tasks in a sentence: `a1B2c3 "Fix the tests", …`. */
export function nameTasks(tasks: readonly Task[], idOf: (task: Task) => string): string {
  return enumerate(tasks.map((task) => `${idOf(task)} "${oneLine(task.description, NAME_LENGTH)}"`));
}

export interface Outcome {
  /** The tasks as they then were. */
  readonly done: readonly Task[];
  readonly failed: readonly { readonly task: Task; readonly error: unknown }[];
}

/** Does the same to each of the tasks, at once. Rejects, as it did with the first, where it could be done with none. */
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

/** A sentence on the tasks that stayed as they were, and why; empty where there are none. */
export function nameFailed(what: string, { failed }: Outcome, idOf: (task: Task) => string): string {
  return failed.length === 0
    ? ""
    : `Not ${what}: ${enumerate(failed.map(({ task, error }) => `${idOf(task)} (${messageOf(error)})`))}.`;
}

function enumerate(names: readonly string[]): string {
  const rest = names.length - MOST_NAMED;
  return rest > 0 ? `${names.slice(0, MOST_NAMED).join(", ")} and ${rest} more` : names.join(", ");
}
