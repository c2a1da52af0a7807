import { relative } from "node:path";
import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task, TaskWorktree } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { withoutLinks } from "../plain-text.ts";
import { ancestors } from "../tree/family.ts";

/** Characters of a description in a message. */
const NAME_LENGTH = 80;

export type IsolatedTask = Task & { readonly worktree: TaskWorktree };

export function isIsolated(child: Child): child is IsolatedTask {
  return isTask(child) && child.worktree !== undefined;
}

/** The name of a task in a message. */
export function nameOf({ description }: Child): string {
  return withoutLinks(excerpt(oneLine(description), NAME_LENGTH));
}

/** The task in whose worktree an agent works. Undefined if it works in the folder. */
export function ownerOfWorktree(family: Pick<Tasks, "child">, id: string): IsolatedTask | undefined {
  const child = family.child(id);
  const ids = child ? [id, ...ancestors(family, child)] : [];
  return ids.flatMap((one) => family.child(one) ?? []).find(isIsolated);
}

/** The directory of the worktree in which an agent works. Undefined if it works in the folder. */
export function worktreeDirectory(family: Pick<Tasks, "child">, id: string): string | undefined {
  return ownerOfWorktree(family, id)?.worktree.directory;
}

/** The path of a file as users see it: relative to the worktree that it is in, otherwise to the workspace. */
export function shownPath(path: string, worktree: string | undefined, includesFolder?: boolean): string {
  const below = worktree === undefined ? ".." : relative(worktree, path);
  return below.startsWith("..") ? vscode.workspace.asRelativePath(path, includesFolder) : below;
}
