import * as vscode from "vscode";
import { messageOf } from "../../engine/errors.ts";
import type { FileChange } from "../../engine/server-model.ts";
import { presentFile } from "../output/workspace-file.ts";
import { shownPath } from "../worktrees/owner.ts";
import { planRevert, type Present, type RefusalReason, type TakeBack } from "./revert-plan.ts";

/** A reverted file, and what undoing the revert needs: its content before and after. Undefined stands for no file. */
export interface RevertedFile {
  readonly path: string;
  readonly was: Uint8Array | undefined;
  readonly left: Uint8Array | undefined;
}

/** A file that wasn't reverted. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: RefusalReason | "not-writable";
  /** The system's message, for a file that couldn't be written. */
  readonly error?: string;
}

export interface Reverted {
  readonly reverted: readonly RevertedFile[];
  readonly refused: readonly RefusedFile[];
}

/**
 * Reverts changes as far as each file's state at the time of writing allows. Writes bytes rather than documents,
 * because the editor would apply its own line endings, encodings and formatters.
 * @param worktree where the task works, unless in the workspace
 */
export async function revertFiles(
  changes: readonly FileChange[],
  isTaskRunning: boolean,
  takeBack: TakeBack,
  worktree?: string,
): Promise<Reverted> {
  const reverted: RevertedFile[] = [];
  const refused: RefusedFile[] = [];
  for (const change of changes) {
    const { path } = change;
    const present = await presentFile(path, worktree);
    const plan = await planRevert(change, present, isTaskRunning, takeBack);
    if (plan.kind === "refused") refused.push({ path, reason: plan.reason });
    if (plan.kind !== "write" && plan.kind !== "delete") continue;
    const left = plan.kind === "write" ? plan.bytes : undefined;
    // Planning takes a moment in which someone may have written to the file.
    if (!isStill(await presentFile(path, worktree), bytesOf(present))) {
      refused.push({ path, reason: "changed-since" });
      continue;
    }
    try {
      await put(path, left);
      reverted.push({ path, was: bytesOf(present), left });
    } catch (error) {
      refused.push({ path, reason: "not-writable", error: messageOf(error) });
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
      else await put(path, was);
    } catch {
      failed.push(path);
    }
  }
  return failed;
}

/** Writes the file, or deletes it if there are no bytes. */
async function put(path: string, bytes: Uint8Array | undefined): Promise<void> {
  const file = vscode.Uri.file(path);
  if (bytes) return void (await vscode.workspace.fs.writeFile(file, bytes));
  // Not every system has a trash.
  await vscode.workspace.fs
    .delete(file, { useTrash: true })
    .then(undefined, () => vscode.workspace.fs.delete(file));
}

function bytesOf(present: Present): Uint8Array | undefined {
  return present.kind === "file" ? present.bytes : undefined;
}

function isStill(present: Present, left: Uint8Array | undefined): boolean {
  if (present.kind === "file")
    return left !== undefined && !present.isUnsaved && Buffer.from(left).equals(present.bytes);
  return present.kind === "absent" && left === undefined;
}

/**
 * Why a file wasn't reverted and what to do, in a sentence. `workers` are the running tasks that changed it as well.
 */
export function refusalSentence(
  { path, reason, error }: RefusedFile,
  workers: readonly string[],
  worktree?: string,
): string {
  const file = shownPath(path, worktree);
  switch (reason) {
    case "at-work":
      return vscode.l10n.t(
        "{0}: the task is still running. Wait until it finishes, or cancel it first.",
        file,
      );
    case "worked-on":
      return vscode.l10n.t(
        '{0}: also changed by "{1}", which is still running. Wait until it finishes, or cancel it first.',
        file,
        workers.join(`", "`),
      );
    case "outside":
      return vscode.l10n.t("{0}: outside this workspace, or reached through a link.", file);
    case "unsaved":
      return vscode.l10n.t("{0}: has unsaved changes in an editor. Save or discard them first.", file);
    case "unreadable":
      return vscode.l10n.t("{0}: can't be read as a file.", file);
    case "no-snapshot":
      return vscode.l10n.t(
        "{0}: its previous content isn't fully known because OpenCode took no snapshot of it.",
        file,
      );
    case "binary":
      return vscode.l10n.t("{0}: a binary file whose previous content isn't available.", file);
    case "encoding":
      return vscode.l10n.t("{0}: not written in UTF-8, so its previous text isn't known exactly.", file);
    case "doubtful":
      return vscode.l10n.t(
        "{0}: other agents ran commands at the same time, so the change may be theirs. Compare and revert by hand.",
        file,
      );
    case "mixed":
      return vscode.l10n.t(
        "{0}: also changed by something else while the task was running, which would be lost. Compare and revert by hand.",
        file,
      );
    case "changed-since":
      return vscode.l10n.t("{0}: changed since in the same places. Compare and revert by hand.", file);
    case "not-writable":
      return vscode.l10n.t("{0}: couldn't be written: {1}", file, error ?? "");
  }
}
