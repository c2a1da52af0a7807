import { access } from "node:fs/promises";
import { UserFacingError } from "../engine/errors.ts";
import type { NewWorktree, WorktreeChanges, Worktrees } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { changedFiles } from "./changed-files.ts";
import { makeWorktree, remakeWorktree } from "./make-worktree.ts";
import { obstacle } from "./obstacles.ts";
import { refs } from "./refs.ts";
import { keep, removeWorktree } from "./remove-worktree.ts";
import { commitOf, findRepository } from "./repository.ts";

/** The Git worktrees that are made for the tasks of one folder. */
export class FolderWorktrees implements Worktrees {
  constructor(private readonly folder: string) {}

  obstacle({ from, location }: Pick<NewWorktree, "from" | "location">): Promise<Text | undefined> {
    return obstacle(this.startOf(from), { location });
  }

  async make({ name: wanted, from, location, startFrom }: NewWorktree): Promise<TaskWorktree> {
    const { name, directory, base } = await makeWorktree({
      directory: this.startOf(from),
      name: wanted,
      location,
      from: startFrom === "head" ? "head" : "what-you-see",
    });
    return { name, directory, base };
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

  async remake({ name, directory }: TaskWorktree): Promise<void> {
    const { prefix } = await findRepository(this.folder);
    const root = prefix === "" ? directory : directory.slice(0, -(prefix.length + 1));
    await remakeWorktree({ folder: this.folder, name, root });
  }

  private startOf(from: TaskWorktree | undefined): string {
    return from?.directory ?? this.folder;
  }
}
