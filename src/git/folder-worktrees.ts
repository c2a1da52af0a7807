import { mkdir } from "node:fs/promises";
import type { BringBackPlan, BroughtBack, FileChoice, ListedWorktree } from "../engine/bring-back.ts";
import { messageOf, UserFacingError } from "../engine/errors.ts";
import type {
  Logger,
  NewWorktree,
  WorktreeChanges,
  Worktrees,
  WorktreeSetup,
  WorktreeState,
} from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { withoutName } from "../engine/task-names.ts";
import { createBranch } from "./branch.ts";
import { planBringBack } from "./bring-back.ts";
import { changedFiles } from "./changed-files.ts";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { GitError } from "./git.ts";
import { includeFiles } from "./include-files.ts";
import { innerRepositories } from "./inner-repositories.ts";
import { discard, expireDiscarded, undoDiscard } from "./discard.ts";
import { listWorktrees } from "./list-worktrees.ts";
import { cleanUpUnfinished, makeWorktree, remakeWorktree } from "./make-worktree.ts";
import { obstacle } from "./obstacles.ts";
import { isThere, Predictions } from "./predictions.ts";
import { changesOf, contents, type FileContent } from "./plan-contents.ts";
import { requireOurs } from "./our-worktrees.ts";
import { listRefs, refs } from "./refs.ts";
import { keep, removeWorktree } from "./remove-worktree.ts";
import { commitOf, findRepository, rootAround } from "./repository.ts";
import { readLog, setupLog, SetupRun } from "./setup-run.ts";
import { snapshotTree } from "./snapshot.ts";
import { takeIn } from "./take-in.ts";
import { claim, removeUnclaimed, removeUnused } from "./worktree-marks.ts";
import { restoreFiles, writeBack } from "./write-back.ts";

/** The Git worktrees that are made for the tasks of one folder. */
export class FolderWorktrees implements Worktrees {
  /** The setup that is running in each worktree, or ran last, by name. */
  private readonly setups = new Map<string, SetupRun>();
  private readonly predictions: Predictions;

  constructor(
    private readonly folder: string,
    /** The environment of setup commands. */
    private readonly env: () => Readonly<Record<string, string | undefined>>,
    private readonly logger: Pick<Logger, "warn">,
  ) {
    this.predictions = new Predictions(folder);
  }

  async obstacle({ from, location }: Pick<NewWorktree, "from" | "location">): Promise<Text | undefined> {
    try {
      await this.startOf(from);
    } catch (error) {
      // What keeps Git from reading it has a text of its own.
      if (!(error instanceof GitError)) {
        if (error instanceof UserFacingError) return error.text;
        throw error;
      }
    }
    return obstacle(from?.directory ?? this.folder, { location });
  }

  async make({ name: wanted, from, location, startFrom, include = [] }: NewWorktree): Promise<TaskWorktree> {
    const start = await this.startOf(from);
    const { name, directory, root, base } = await makeWorktree({
      directory: start,
      name: wanted,
      location,
      unclaimedFor: this.folder,
      base: from?.base,
      // What a task launches or continues goes on from its work, be it committed or not.
      from: startFrom === "head" && !from ? "head" : "what-you-see",
    });
    try {
      await includeFiles({ folder: start, root, patterns: include });
    } catch (error) {
      await removeUnused(this.folder, name);
      throw error;
    }
    return { name, directory, base };
  }

  claim({ name }: TaskWorktree): Promise<void> {
    return claim(this.folder, name);
  }

  removeUnused({ name }: TaskWorktree): Promise<void> {
    return removeUnused(this.folder, name);
  }

  async takeUp(worktrees: readonly TaskWorktree[]): Promise<ReadonlyMap<string, string>> {
    const unfinished = await cleanUpUnfinished(this.folder);
    const unclaimed = await removeUnclaimed(this.folder, new Set(worktrees.map(({ name }) => name)));
    for (const [name, error] of [...unfinished, ...unclaimed])
      this.logger.warn(
        withoutName(`Couldn't remove the unfinished worktree ${name}: ${messageOf(error)}`, name),
      );
    if (worktrees.length === 0) return new Map();
    const all = await listRefs(this.folder, refs.allBases);
    const bases = new Map(all.map(({ ref, commit }) => [ref, commit]));
    return new Map(
      worktrees.flatMap(({ name }) => {
        const base = bases.get(refs.base(name));
        return base === undefined ? [] : [[name, base]];
      }),
    );
  }

  async setUp({ name, directory }: TaskWorktree, setup: WorktreeSetup): Promise<void> {
    const run = new SetupRun(await setupLog(directory));
    this.setups.set(name, run);
    await run.start({ ...setup, directory, env: this.env() });
  }

  async setupOutput({ name, directory }: TaskWorktree): Promise<string | undefined> {
    return this.setups.get(name)?.output ?? (await readLog(directory));
  }

  exists(worktree: TaskWorktree): Promise<boolean> {
    return isThere(worktree, this.folder);
  }

  async changes(worktree: TaskWorktree): Promise<WorktreeChanges> {
    const { name, directory, base } = worktree;
    const ref = refs.result(name);
    if (await this.exists(worktree)) await keep({ folder: this.folder, directory, name, as: "result" });
    const result = await commitOf(this.folder, ref);
    if (result === undefined)
      throw new UserFacingError(
        sentence("The worktree {0} no longer exists, and no result of it was kept.", name),
      );
    return { files: await changedFiles(this.folder, base, result), ref };
  }

  async remove({ name }: Pick<TaskWorktree, "name">): Promise<void> {
    await removeWorktree({ folder: this.folder, name });
  }

  async remake(
    { name, directory }: TaskWorktree,
    { include = [], discarded }: Parameters<Worktrees["remake"]>[1],
  ): Promise<void> {
    const { folder } = this;
    const root = await rootAround(directory, folder);
    if (discarded === undefined) await remakeWorktree({ folder, name, root });
    else await undoDiscard({ folder, name, root, ref: discarded });
    try {
      await claim(folder, name);
      await includeFiles({ folder, root, patterns: include });
    } catch (error) {
      // So that it isn't taken for a complete one. What was discarded stays in any case.
      if (discarded === undefined) await removeWorktree({ folder, name });
      throw error;
    }
  }

  planBringBack(
    { directory, name, base }: TaskWorktree,
    unsaved: ReadonlyMap<string, string>,
  ): Promise<BringBackPlan> {
    return planBringBack({ folder: this.folder, worktree: directory, name, base, unsaved });
  }

  async isAsPlanned({ directory, name, base }: TaskWorktree, { agents }: BringBackPlan): Promise<boolean> {
    const { root } = (await requireOurs(directory, this.folder, { name })).repository;
    return (
      (await snapshotTree(root, { base })).tree === agents && (await innerRepositories(root)).length === 0
    );
  }

  async bringBack(
    given: BringBackPlan,
    choices: readonly FileChoice[],
    unsaved: readonly string[],
  ): Promise<BroughtBack> {
    const plan = await this.requireOwn(given);
    const changes = await fewAtOnce(choices, async ({ path, take }) => {
      const file = plan.files.find((one) => one.path === path);
      return file ? changesOf(plan, file, take) : new Map<string, FileContent>();
    });
    const files = new Map(changes.flatMap((some) => [...some]));
    const texts: Record<string, string> = {};
    for (const path of unsaved) {
      const content = files.get(path);
      if (content) texts[path] = await newText(plan, path, content);
      files.delete(path);
    }
    return { ...(await this.keepingFolder(writeBack(plan, files))), texts };
  }

  async undoBringBack({ before, after }: Omit<BroughtBack, "texts">): Promise<void> {
    await this.keepingFolder(restoreFiles((await findRepository(this.folder)).root, before, after));
  }

  /** Makes the folder again if its last file was deleted: Git and the server work there. */
  private async keepingFolder<T>(writing: Promise<T>): Promise<T> {
    const written = await writing;
    await mkdir(this.folder, { recursive: true });
    return written;
  }

  takeIn(worktree: TaskWorktree, plan: BringBackPlan): Promise<string> {
    return takeIn(worktree, plan, this.folder);
  }

  async createBranch(
    { directory, name: of, base }: TaskWorktree,
    { name, message }: { readonly name: string; readonly message: string },
  ): Promise<void> {
    await createBranch({ folder: this.folder, worktree: directory, of, base, name, message });
  }

  async discard({ directory, name }: TaskWorktree): Promise<string> {
    const { ref } = await discard({ folder: this.folder, directory, name });
    await expireDiscarded(this.folder, new Date());
    return ref;
  }

  predict(
    worktrees: readonly TaskWorktree[],
    changed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, WorktreeState>> {
    return this.predictions.of(worktrees, changed, signal);
  }

  async list(): Promise<readonly ListedWorktree[]> {
    await expireDiscarded(this.folder, new Date());
    return (await listWorktrees(this.folder)).map(({ name, made, size, work }) => ({
      name,
      made: made.getTime(),
      size,
      files: work?.files,
      commits: work?.commits.length ?? 0,
    }));
  }

  /** A plan comes from a window, and is only for the repository of this folder. */
  private async requireOwn(plan: BringBackPlan): Promise<BringBackPlan> {
    return { ...plan, root: (await findRepository(this.folder)).root };
  }

  private async startOf(from: TaskWorktree | undefined): Promise<string> {
    if (from) await requireOurs(from.directory, this.folder, { name: from.name });
    return from?.directory ?? this.folder;
  }
}

/** The new text of a file with unsaved changes. Throws if the editor can't apply the change to its text alone. */
async function newText(plan: BringBackPlan, path: string, { bytes, mode }: FileContent): Promise<string> {
  const mine = await contents(plan, path, "mine");
  const text = bytes && mine.mode === mode && mode !== "symlink" ? textOf(bytes) : undefined;
  if (text !== undefined) return text;
  throw new UserFacingError(
    sentence(
      "{0} has unsaved changes in an editor. Save or discard them, then bring the work back again.",
      path,
    ),
  );
}

/** Undefined if it isn't UTF-8. */
function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
