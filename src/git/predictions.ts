import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ChangedFile } from "../engine/bring-back.ts";
import type { WorktreeState } from "../engine/ports.ts";
import { Serial } from "../engine/serial.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { changedFiles } from "./changed-files.ts";
import { requireOurs } from "./our-worktrees.ts";
import { predict, worktreeState, type TreeState } from "./predict.ts";
import { rootAround } from "./repository.ts";
import { snapshotTree } from "./snapshot.ts";

/** The work in a worktree when it was last read. */
interface Work extends Required<TreeState> {
  readonly name: string;
  readonly files: readonly ChangedFile[];
  /** All paths of the files, also those before they were renamed. */
  readonly paths: ReadonlySet<string>;
}

/** One at a time for all folders, as several can be in one repository. */
const reading = new Serial();

/** Compares the worktrees of one folder. Keeps what it has read, so that only what has changed is read again. */
export class Predictions {
  private works: ReadonlyMap<string, Work> = new Map();
  /** The conflicts between two states, by their trees. */
  private known: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(private readonly folder: string) {}

  /** See `Worktrees.predict`. */
  async of(
    worktrees: readonly TaskWorktree[],
    changed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, WorktreeState>> {
    return reading.run(async () => {
      await this.read(worktrees, changed, signal);
      try {
        return await this.compare(signal);
      } catch {
        signal.throwIfAborted();
        // Another repository may be in its place, which knows nothing of what was read before.
        this.works = new Map();
        await this.read(worktrees, changed, signal);
        return this.compare(signal);
      }
    });
  }

  private async read(
    worktrees: readonly TaskWorktree[],
    changed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const works = new Map<string, Work>();
    for (const worktree of worktrees) {
      if (!(await isThere(worktree, this.folder))) continue;
      const { name, base } = worktree;
      const known = this.works.get(name);
      const isKnown = known?.base.commit === base && !changed.has(name);
      // One that was led elsewhere isn't read: nothing may be run there.
      const work = isKnown
        ? known
        : (await isOurs(worktree, this.folder, signal)) && (await readWork(worktree, signal));
      if (work) works.set(name, work);
    }
    this.works = works;
  }

  private async compare(signal: AbortSignal): Promise<ReadonlyMap<string, WorktreeState>> {
    const works = [...this.works.values()];
    const conflicts = new Map(works.map(({ name }) => [name, [] as WorktreeState["conflicts"][number][]]));
    const known = new Map<string, readonly string[]>();
    const pathsOf = async (a: Work, b: TreeState): Promise<readonly string[]> => {
      const key = [a.base.commit, a.tree, b.base?.commit, b.tree].join(" ");
      const paths = this.known.get(key) ?? (await predict(this.folder, a, b, signal));
      known.set(key, paths);
      return paths;
    };
    const changed = works.filter(({ files }) => files.length > 0);
    const folder = changed.length > 0 && (await this.folderWith(changed, signal));
    for (const one of changed) {
      const paths = folder ? await pathsOf(one, folder) : [];
      if (paths.length > 0) conflicts.get(one.name)?.push({ paths });
    }
    for (const [at, one] of changed.entries())
      for (const other of changed.slice(at + 1).filter(({ paths }) => overlap(one.paths, paths))) {
        const shared = await pathsOf(one, other);
        if (shared.length === 0) continue;
        conflicts.get(one.name)?.push({ worktree: other.name, paths: shared });
        conflicts.get(other.name)?.push({ worktree: one.name, paths: shared });
      }
    this.known = known;
    return new Map(
      works.map(({ name, files }) => [
        name,
        {
          files: files.length,
          added: sum(files.map(({ added }) => added)),
          removed: sum(files.map(({ removed }) => removed)),
          conflicts: conflicts.get(name) ?? [],
        },
      ]),
    );
  }

  /** Git may ignore a file of the folder where a worktree has changed or added one. */
  private async folderWith(works: readonly Work[], signal: AbortSignal): Promise<TreeState> {
    const alsoIgnored = works.flatMap(({ paths }) => [...paths]);
    const { tree } = await snapshotTree(this.folder, { alsoIgnored, signal });
    return { tree };
  }
}

/**
 * Whether a worktree exists. If its task has deleted or renamed the folder for which it was made, that is made again, as
 * Git and the server work there.
 */
export async function isThere({ directory }: TaskWorktree, folder: string): Promise<boolean> {
  if (await exists(directory)) return true;
  try {
    if (!(await exists(join(await rootAround(directory, folder), ".git")))) return false;
    await mkdir(directory, { recursive: true });
    return true;
  } catch {
    return false;
  }
}

async function isOurs(
  { directory, name }: TaskWorktree,
  folder: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await requireOurs(directory, folder, { name, signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Undefined if the worktree is gone or cannot be read now. */
async function readWork(
  { name, base, directory }: TaskWorktree,
  signal: AbortSignal,
): Promise<Work | undefined> {
  try {
    const state = await worktreeState(directory, base, signal);
    const files = await changedFiles(directory, base, state.tree, { signal });
    const paths = new Set(files.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path])));
    return { ...state, name, files, paths };
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** Whether two changes concern the same file, or a file and a folder of the same name. */
function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return isBelow(a, b) || isBelow(b, a);
}

function isBelow(paths: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const path of paths)
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1))
      if (others.has(path.slice(0, end))) return true;
  return false;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
