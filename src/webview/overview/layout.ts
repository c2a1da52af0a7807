import type { OverviewTask } from "../../protocol/overview.ts";

/** What a task is doing, or how it ended. */
export type LaneState = "waiting" | "queued" | "working" | "completed" | "error" | "cancelled" | "idle";

/** A part of a task's time. `earlier` contains turns whose times are unknown. */
export interface Interval {
  readonly kind: "earlier" | "queued" | "working" | "waiting";
  readonly from: number;
  /** Missing if it lasts until now. */
  readonly to?: number | undefined;
}

/** One task with its place in the table. */
export interface Lane {
  readonly task: OverviewTask;
  readonly state: LaneState;
  /** The number of tasks above it, which launched one another. */
  readonly depth: number;
  readonly intervals: readonly Interval[];
}

/** A shorter time before a turn is what any launch takes. */
const LAUNCH_MS = 1_000;

/**
 * The tasks that were active since `from`, and those above them: the latest launch first, subtasks below the task that
 * launched them.
 */
export function lanesOf(tasks: readonly OverviewTask[], from: number): readonly Lane[] {
  const byID = new Map(tasks.map((task) => [task.id, task]));
  const kept = new Set<OverviewTask>();
  for (const task of tasks)
    if (lastsUntil(task) >= from)
      for (let each: OverviewTask | undefined = task; each && !kept.has(each); each = byID.get(each.parentID))
        kept.add(each);
  const latestFirst = [...kept].sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  const lanes: Lane[] = [];
  const add = (task: OverviewTask, depth: number): void => {
    if (!kept.delete(task)) return;
    lanes.push({ task, state: stateOf(task), depth, intervals: intervalsOf(task) });
    for (const each of latestFirst) if (each.parentID === task.id) add(each, depth + 1);
  };
  for (const task of latestFirst) if (!byID.has(task.parentID)) add(task, 0);
  // Broken metadata can make a session its own ancestor.
  for (const task of latestFirst) add(task, 0);
  return lanes;
}

export function isActive({ status }: OverviewTask): boolean {
  return status === "running" || status === "resumed";
}

/** When a task ended, as far as that is known; infinity while it is active. */
function lastsUntil(task: OverviewTask): number {
  return isActive(task) ? Infinity : (task.endedAt ?? task.startedAt);
}

function stateOf(task: OverviewTask): LaneState {
  const { status, phase } = task;
  if (phase === "needs-permission" || phase === "needs-answer") return "waiting";
  if (phase === "queued") return "queued";
  return status === "running" || status === "resumed" ? "working" : status;
}

function intervalsOf(task: OverviewTask): readonly Interval[] {
  const { createdAt, startedAt, hasUnknownTurns, worked, phase, spans = [] } = task;
  const turns = spans.filter(([what]) => what === "turn");
  const isFirst = turns.length === 0 && !hasUnknownTurns;
  if (isFirst && worked === 0 && !isActive(task))
    return [{ kind: "queued", from: createdAt, to: lastsUntil(task) }];
  if (isFirst && phase === "queued") return [{ kind: "queued", from: createdAt }];
  const intervals: Interval[] = [];
  const begun = turns[0]?.[1] ?? startedAt;
  if (begun - createdAt >= LAUNCH_MS)
    intervals.push({ kind: hasUnknownTurns ? "earlier" : "queued", from: createdAt, to: begun });
  for (const [, from, to] of turns) intervals.push(...turnOf(task, from, to));
  if (phase === "queued") intervals.push({ kind: "queued", from: startedAt });
  else intervals.push(...turnOf(task, startedAt, Math.max(startedAt, lastsUntil(task))));
  return intervals;
}

/** The intervals of a turn, which waits for the user interrupt. */
function turnOf({ spans = [], waitingSince }: OverviewTask, from: number, to: number): readonly Interval[] {
  const intervals: Interval[] = [];
  const add = (kind: Interval["kind"], start: number, end: number): void => {
    if (start < end || (kind === "working" && intervals.length === 0))
      intervals.push({ kind, from: start, to: end === Infinity ? undefined : end });
  };
  const waits = spans.flatMap(([what, start, end]) => (what === "wait" ? [{ start, end }] : []));
  if (to === Infinity && waitingSince !== undefined) waits.push({ start: waitingSince, end: Infinity });
  let at = from;
  for (const { start, end } of waits) {
    if (end <= at || start >= to) continue;
    add("working", at, Math.max(at, start));
    add("waiting", Math.max(at, start), Math.min(end, to));
    at = end;
  }
  add("working", at, to);
  return intervals;
}

/** The time axis, from its first to its last label, and the times that are labeled. */
export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [
  ...[10, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6].map((count) => count * HOUR),
];
const MOST_STEPS = 6;

/** An axis that contains both times and ends after `now`, so that it has room to grow. Its labels are round times. */
export function axisOf(from: number, now: number, dayStart: number): Axis {
  const step = STEPS.find((each) => (now - from) / each < MOST_STEPS) ?? STEPS.at(-1)!;
  const first = dayStart + Math.floor((from - dayStart) / step) * step;
  const count = Math.floor((now - first) / step) + 1;
  return {
    from: first,
    to: first + count * step,
    ticks: Array.from({ length: count }, (_, index) => first + index * step),
  };
}

/** What was spent until a time, in US dollars and tokens. */
export interface Spent {
  readonly at: number;
  readonly cost: number;
  readonly tokens: number;
}

/** What the tasks spent, added up over time: what a task spent is known at its end, or now while it is active. */
export function spendingOf(tasks: readonly OverviewTask[], now: number): readonly Spent[] {
  const ends = tasks
    .map((task) => ({ at: Math.min(now, lastsUntil(task)), task }))
    .sort((a, b) => a.at - b.at);
  let [cost, tokens] = [0, 0];
  return ends.map(({ at, task }) => ({ at, cost: (cost += task.cost), tokens: (tokens += task.tokens) }));
}
