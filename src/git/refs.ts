import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { git } from "./git.ts";

/** All references of ours. No branch: Git shows them nowhere, and keeps what they point to. */
const NAMESPACE = "refs/asyncagents";
const DISCARDED = `${NAMESPACE}/discarded`;

/** Tells this process from an earlier one with the same number, as containers give the same numbers at each start. */
const run = randomBytes(4).toString("hex");
/** Of this process. Read once, as the name of a machine can change with its network. */
const host = hostname().replace(/[^A-Za-z0-9-]/g, "-") || "local";

/** The references of one worktree, by its name. They outlive it, so that it can be made again. */
export const refs = {
  all: (name: string) => `${NAMESPACE}/${name}/`,
  /** The state from which the worktree was made. */
  base: (name: string) => `${NAMESPACE}/${name}/base`,
  allBases: `${NAMESPACE}/*/base`,
  /** The commit that was checked out at that time. Missing in a repository without commits. */
  head: (name: string) => `${NAMESPACE}/${name}/head`,
  /** A later state of the worktree, with its commits. */
  kept: (name: string, time: Date) => `${NAMESPACE}/${name}/kept-${stamp(time)}`,
  keptAll: (name: string) => `${NAMESPACE}/${name}/kept-*`,
  /** The state when the task last ended, for whoever takes over its work. */
  result: (name: string) => `${NAMESPACE}/${name}/result`,
  /** The last state of a worktree that was discarded. */
  discarded: (name: string, time: Date) => `${DISCARDED}/${name}-${stamp(time)}`,
  discardedAll: `${DISCARDED}/*`,
  /** A worktree that a process is just making for the first time; if the process is gone, nothing of it is needed. */
  making: (name: string) => `${NAMESPACE}/${name}/making-${self()}`,
  /** A worktree that a process is just making again or removing; if the process is gone, its folder is not needed. */
  changing: (name: string) => `${NAMESPACE}/${name}/changing-${self()}`,
};

/** A worktree on which a process began to work and did not finish. */
export interface Unfinished {
  readonly ref: string;
  readonly name: string;
  readonly step: "making" | "changing";
}

export interface Ref {
  readonly ref: string;
  readonly commit: string;
}

/** References to create, which must not exist, to set, whether they exist or not, and to remove. */
export interface RefChanges {
  readonly create?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
}

/** Changes references, all or none. */
export async function updateRefs(
  directory: string,
  changes: RefChanges,
  signal?: AbortSignal,
): Promise<void> {
  const lines = [
    ...Object.entries(changes.create ?? {}).map(([ref, commit]) => `create ${ref}\0${commit}\0`),
    ...Object.entries(changes.set ?? {}).map(([ref, commit]) => `update ${ref}\0${commit}\0\0`),
    ...(changes.remove ?? []).map((ref) => `delete ${ref}\0\0`),
  ];
  if (lines.length === 0) return;
  await git(directory, ["update-ref", "-z", "--stdin"], { signal, input: lines.join("") });
}

/** The references that match a pattern such as `refs/x/*`, sorted by name. */
export async function listRefs(directory: string, pattern: string, signal?: AbortSignal): Promise<Ref[]> {
  const format = "--format=%(objectname) %(refname)";
  const output = (await git(directory, ["for-each-ref", format, pattern], { signal })).toString();
  return output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ commit: line.slice(0, line.indexOf(" ")), ref: line.slice(line.indexOf(" ") + 1) }));
}

/** What processes that no longer exist left unfinished. */
export async function unfinished(directory: string, signal?: AbortSignal): Promise<Unfinished[]> {
  const all = await listRefs(directory, `${NAMESPACE}/*/*`, signal);
  return all.flatMap(({ ref }) => {
    const [, name = "", step, owner = ""] =
      /^refs\/asyncagents\/([^/]+)\/(making|changing)-(.+)$/.exec(ref) ?? [];
    if (step === undefined || isAtWork(owner)) return [];
    return [{ ref, name, step: step as Unfinished["step"] }];
  });
}

/** The name and time of a reference of a discarded worktree. */
export function parseDiscarded(ref: string): { readonly name: string; readonly time: Date } | undefined {
  const pattern = /^(.+)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/;
  const [, name, year, month, day, hours, minutes, seconds, ms] =
    pattern.exec(ref.slice(DISCARDED.length + 1)) ?? [];
  if (name === undefined || !ref.startsWith(`${DISCARDED}/`)) return undefined;
  return { name, time: new Date(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${ms}Z`) };
}

function stamp(time: Date): string {
  return time.toISOString().replace(/[-:.]/g, "");
}

/** Names this process. */
export function self(): string {
  return `${process.pid}-${run}@${host}`;
}

/** Whether the process that is named so exists, or may exist where this one cannot see it. */
export function isAtWork(owner: string): boolean {
  const [, pid, itsRun, machine] = /^(\d+)-([0-9a-f]+)@(.+)$/.exec(owner) ?? [];
  if (machine !== host) return true;
  return Number(pid) === process.pid ? itsRun === run : isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
