import { messageOf } from "../../engine/errors.ts";
import type { FileChange } from "../../engine/server-model.ts";
import { sentence, type Sentence } from "../../engine/sentence.ts";
import type { RefusalReason, RevertPlan } from "../../rpc/revert-plan.ts";
import { presentFile, putFile, type FileState, type Present } from "../output/workspace-file.ts";
import { shownPath } from "../worktrees/isolated-task.ts";

/** A reverted file, and what undoing the revert needs: its state before and after. Undefined stands for no file. */
export interface RevertedFile {
  readonly path: string;
  readonly was: FileState | undefined;
  readonly left: FileState | undefined;
}

/** A file that wasn't reverted. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: RefusalReason | "not-writable";
  /** Names the file, the reason and what to do. */
  readonly why: Sentence;
}

export interface Reverted {
  readonly reverted: readonly RevertedFile[];
  readonly refused: readonly RefusedFile[];
}

/** Plans the revert of a file that is in this state. */
export type PlanRevert = (change: FileChange, present: Present) => Promise<RevertPlan>;

/**
 * Reverts changes as far as each file's state at the time of writing allows. Writes bytes rather than documents,
 * because the editor would apply its own line endings, encodings and formatters.
 * @param worktree where the task works, unless in the workspace
 */
export async function revertFiles(
  changes: readonly FileChange[],
  planRevert: PlanRevert,
  worktree?: string,
): Promise<Reverted> {
  const reverted: RevertedFile[] = [];
  const refused: RefusedFile[] = [];
  for (const change of changes) {
    const { path } = change;
    const present = await presentFile(path, worktree);
    const plan = await planRevert(change, present);
    if (plan.kind === "refused") refused.push({ path, reason: plan.reason, why: plan.why });
    if (plan.kind !== "write" && plan.kind !== "delete") continue;
    const name = shownPath(path, worktree);
    const was = present.kind === "file" ? present : undefined;
    const left = plan.kind === "write" ? { bytes: Buffer.from(plan.text), mode: plan.mode } : undefined;
    // Planning takes a moment in which someone may have written to the file.
    if (!isStill(await presentFile(path, worktree), was)) {
      const why = sentence("{0}: has since changed in the same places. Compare and revert by hand.", name);
      refused.push({ path, reason: "changed-since", why });
      continue;
    }
    try {
      await putFile(path, left);
      reverted.push({ path, was, left });
    } catch (error) {
      const why = sentence("{0}: couldn't be written: {1}", name, messageOf(error));
      refused.push({ path, reason: "not-writable", why });
    }
  }
  return { reverted, refused };
}

/** Restores reverted files that nobody has changed since. Returns the paths of the others. */
export async function undoRevert(
  files: readonly RevertedFile[],
  worktree?: string,
): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { path, was, left } of files) {
    const present = await presentFile(path, worktree);
    try {
      if (!isStill(present, left)) failed.push(path);
      else await putFile(path, was);
    } catch {
      failed.push(path);
    }
  }
  return failed;
}

function isStill(present: Present, left: FileState | undefined): boolean {
  if (present.kind === "file")
    return left !== undefined && !present.isUnsaved && Buffer.from(left.bytes).equals(present.bytes);
  return present.kind === "absent" && left === undefined;
}
