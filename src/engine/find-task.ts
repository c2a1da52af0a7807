import { Refusal, unknownTask } from "./errors.ts";
import { sentence } from "./sentence.ts";
import { shortID, type TaskRecord } from "./task.ts";
import type { Family } from "./tree.ts";

type Named = Pick<TaskRecord, "id" | "parentSessionID">;

/** What is remembered of a task whose session is gone. */
export interface Tombstone {
  readonly id: string;
  readonly description: string;
  readonly parentSessionID: string;
}

/** As many characters as are shown of an ID at least. Fewer are no reference, but a guess. */
const SHORTEST_PART = 6;
/** How many tasks whose session is gone are remembered. */
const TOMBSTONES_KEPT = 1_000;

export function withTombstone(
  tombstones: readonly Tombstone[],
  { id, description, parentSessionID }: Tombstone,
): readonly Tombstone[] {
  const others = tombstones.filter((tombstone) => tombstone.id !== id);
  return [...others, { id, description, parentSessionID }].slice(-TOMBSTONES_KEPT);
}

/**
 * Finds a task by its ID, or by a prefix or suffix of it of at least six characters that is unique among the tasks of `parentSessionID`, or among
 * all tasks if that is undefined. Throws a {@link Refusal} if no task or more than one matches.
 */
export function findTask<T extends Named>(
  tasks: Pick<Family<T>, "get" | "all">,
  tombstones: readonly Tombstone[],
  reference: string,
  parentSessionID?: string,
): T {
  const wanted = reference.trim();
  if (wanted === "")
    throw new Refusal("unknown-task", sentence("The task ID is empty. Use an ID from the list of tasks."));
  const isCandidate = (task: T): boolean =>
    parentSessionID === undefined || task.parentSessionID === parentSessionID;
  const exact = tasks.get(wanted);
  if (exact && isCandidate(exact)) return exact;
  const matches = tasks.all().filter((task) => isCandidate(task) && isPartOf(task.id, wanted));
  const [match] = matches;
  if (!match && wanted.length < SHORTEST_PART)
    throw new Refusal(
      "unknown-task",
      sentence("{0} is too short for a task ID. Use at least {1} of its characters.", wanted, SHORTEST_PART),
    );
  if (!match) throw noSuchTask(tombstones, wanted, parentSessionID);
  if (matches.length > 1) {
    const ids = matches.slice(0, 5).map(({ id }) => shortID(id));
    throw new Refusal(
      "ambiguous-task",
      sentence("Several tasks match {0}: {1}. Use more of the ID.", wanted, ids.join(", ")),
    );
  }
  return match;
}

/** The refusal for an unknown task ID: either there never was such a task, or its session is gone. */
export function noSuchTask(
  tombstones: readonly Tombstone[],
  wanted: string,
  parentSessionID?: string,
): Refusal {
  const gone = tombstones.find(
    (tombstone) =>
      (parentSessionID === undefined || tombstone.parentSessionID === parentSessionID) &&
      isPartOf(tombstone.id, wanted),
  );
  return gone
    ? new Refusal(
        "session-gone",
        sentence(
          'The session of task {0} "{1}" no longer exists. Start a new asyncagents_task instead.',
          shortID(gone.id),
          gone.description,
        ),
      )
    : unknownTask(wanted);
}

export function noSuchBatch(batchID: string): Refusal {
  return new Refusal(
    "unknown-batch",
    sentence("Batch {0} doesn't exist. List the tasks to see their batches.", batchID),
  );
}

/** The refusal for a session ID that is neither a task nor a subagent. */
export function noSuchSubagent(sessionID: string): Refusal {
  return new Refusal(
    "unknown-session",
    sentence("Subagent {0} no longer exists. Refresh the view.", shortID(sessionID)),
  );
}

function isPartOf(id: string, wanted: string): boolean {
  return wanted.length >= SHORTEST_PART && (id.startsWith(wanted) || id.endsWith(wanted));
}
