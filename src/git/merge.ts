import type { Conflict, Version } from "../engine/bring-back.ts";
import { askGit, parts } from "./git.ts";
import { commitTree } from "./snapshot.ts";

/** A path at which the two sides don't fit together, with what each of them has there. */
export interface Conflicting {
  readonly conflict: Conflict;
  readonly mine: Version | undefined;
  readonly agents: Version | undefined;
}

/** Trees or commits to merge, of which `base` is the commit from which both began. */
export interface Sides {
  readonly base: string;
  readonly mine: string;
  readonly agents: string;
}

export interface Merge {
  /** What is in conflict contains conflict markers, which name the sides by their commits. */
  readonly tree: string;
  /** By path. */
  readonly conflicts: ReadonlyMap<string, Conflicting>;
  /** Paths of the merged tree that exist on neither side, for files that were in the way of others. */
  readonly moved: ReadonlySet<string>;
  readonly commits: { readonly mine: string; readonly agents: string };
}

/** What Git says of a conflicting path: 1 is the base, 2 is mine, 3 is the agent's. */
interface Stages {
  readonly versions: Map<string, Version>;
  isKind: boolean;
}

const LINK = "120000";

/** The environment variable with the merge driver. */
const DRIVER = "ASYNC_AGENTS_MERGE_DRIVER";

/** Merges without touching files, index or references. */
export async function mergeTrees(directory: string, sides: Sides, signal?: AbortSignal): Promise<Merge> {
  const [drivers, mine, agents] = await Promise.all([
    ownDrivers(directory, signal),
    commitTree(directory, `${sides.mine}^{tree}`, [sides.base], signal),
    commitTree(directory, `${sides.agents}^{tree}`, [sides.base], signal),
  ]);
  const { stdout } = await askGit(
    directory,
    [
      ...drivers.map((name) => `--config-env=${name}=${DRIVER}`),
      // A file that one side adds to a folder that the other side renamed stays where it was added.
      ...["-c", "merge.renames=true", "-c", "merge.directoryRenames=false"],
      ...["merge-tree", "--write-tree", "-z", "--no-messages", mine, agents],
    ],
    { env: { [DRIVER]: asText(mine, agents) }, signal, accept: [1] },
  );
  const [tree = "", ...entries] = parts(stdout);
  const byPath = new Map<string, Stages>();
  const moved = new Set<string>();
  for (const entry of entries) {
    const [, mode = "", blob = "", stage = "", name = ""] =
      /^(\d+) ([0-9a-f]+) (\d)\t([^]*)$/.exec(entry) ?? [];
    const path = withoutSide(name, [mine, agents]);
    if (path !== name) moved.add(name);
    const known = byPath.get(path) ?? { versions: new Map(), isKind: false };
    byPath.set(path, known);
    known.versions.set(stage, { mode, blob });
    known.isKind ||= path !== name || mode === LINK;
  }
  const conflicts = new Map([...byPath].map(([path, stages]) => [path, conflicting(stages)]));
  return { tree, conflicts, moved, commits: { mine, agents } };
}

/** The merge drivers of the user's configuration. They may run anything, and take one side without a word. */
async function ownDrivers(directory: string, signal?: AbortSignal): Promise<readonly string[]> {
  const { stdout } = await askGit(
    directory,
    ["config", "-z", "--name-only", "--get-regexp", "^merge\\..*\\.driver$"],
    { signal, accept: [1] },
  );
  return parts(stdout);
}

/** A merge driver that does what Git does without one. A file that isn't text is in conflict, too. */
function asText(mine: string, agents: string): string {
  return `git merge-file --marker-size=%L -L ${mine} -L base -L ${agents} %A %O %B || exit 1`;
}

/** Git appends the commit to the name of a file that is in the way of another. */
function withoutSide(name: string, commits: readonly string[]): string {
  const at = Math.max(...commits.map((commit) => name.lastIndexOf(`~${commit}`)));
  return at < 0 ? name : name.slice(0, at);
}

function conflicting({ versions, isKind }: Stages): Conflicting {
  return {
    conflict: isKind ? "kind" : conflictOf([...versions.keys()].sort().join("")),
    mine: versions.get("2"),
    agents: versions.get("3"),
  };
}

function conflictOf(stages: string): Conflict {
  switch (stages) {
    case "123":
      return "content";
    case "23":
      return "both-added";
    case "13":
      return "deleted-by-you";
    case "12":
      return "deleted-by-agent";
    default:
      return "kind";
  }
}
