import { access } from "node:fs/promises";
import { UserFacingError } from "../engine/errors.ts";
import type { NewWorktree, WorktreeChanges, Worktrees, WorktreeSetup } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { changedFiles } from "./changed-files.ts";
import { includeFiles } from "./include-files.ts";
import { makeWorktree, remakeWorktree } from "./make-worktree.ts";
import { obstacle } from "./obstacles.ts";
import { refs } from "./refs.ts";
import { keep, removeWorktree } from "./remove-worktree.ts";
import { commitOf, findRepository } from "./repository.ts";
import { readLog, setupLog, SetupRun } from "./setup-run.ts";

/** The Git worktrees that are made for the tasks of one folder. */
export class FolderWorktrees implements Worktrees {
  /** The setup that is running in each worktree, or ran last, by name. */
  private readonly setups = new Map<string, SetupRun>();

  constructor(
    private readonly folder: string,
    /** The environment of setup commands. */
    private readonly env: () => Readonly<Record<string, string | undefined>>,
  ) {}

  obstacle({ from, location }: Pick<NewWorktree, "from" | "location">): Promise<Text | undefined> {
    return obstacle(this.startOf(from), { location });
  }

  async make({ name: wanted, from, location, startFrom, include = [] }: NewWorktree): Promise<TaskWorktree> {
    const start = this.startOf(from);
    const { name, directory, root, base } = await makeWorktree({
      directory: start,
      name: wanted,
      location,
      from: startFrom === "head" ? "head" : "what-you-see",
    });
    try {
      await includeFiles({ folder: start, root, patterns: include });
    } catch (error) {
      await removeWorktree({ folder: this.folder, name });
      throw error;
    }
    return { name, directory, base };
  }

  async setUp({ name, directory }: TaskWorktree, setup: WorktreeSetup): Promise<void> {
    const run = new SetupRun(await setupLog(directory));
    this.setups.set(name, run);
    await run.start({ ...setup, directory, env: this.env() });
  }

  async setupOutput({ name, directory }: TaskWorktree): Promise<string | undefined> {
    return this.setups.get(name)?.output ?? (await readLog(directory));
  }

  async exists({ directory }: TaskWorktree): Promise<boolean> {
    try {
      await access(directory);
      return true;
    } catch {
      return false;
    }
  }

  async changes(worktree: TaskWorktree): Promise<WorktreeChanges> {
    const { name, directory, base } = worktree;
    const ref = refs.result(name);
    if (await this.exists(worktree)) await keep({ directory, as: "result" });
    const result = await commitOf(this.folder, ref);
    if (result === undefined)
      throw new UserFacingError(
        sentence("The worktree {0} no longer exists, and no result of it was kept.", name),
      );
    return { files: await changedFiles(this.folder, base, result), ref };
  }

  async remove({ name }: TaskWorktree): Promise<void> {
    await removeWorktree({ folder: this.folder, name });
  }

  async remake(
    { name, directory }: TaskWorktree,
    { include = [] }: Pick<NewWorktree, "include">,
  ): Promise<void> {
    const { prefix } = await findRepository(this.folder);
    const root = prefix === "" ? directory : directory.slice(0, -(prefix.length + 1));
    await remakeWorktree({ folder: this.folder, name, root });
    await includeFiles({ folder: this.folder, root, patterns: include });
  }

  private startOf(from: TaskWorktree | undefined): string {
    return from?.directory ?? this.folder;
  }
}
