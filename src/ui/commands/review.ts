import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { Sentence } from "../../engine/sentence.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { RevertPlan } from "../../rpc/revert-plan.ts";
import { presentFile } from "../output/workspace-file.ts";
import { sideUri } from "../changes/change-side.ts";
import { namelike } from "../changes/diff-sides.ts";
import { ChangeNode, showChange, showChanges as showInEditor } from "../changes/changes-view.ts";
import {
  type RefusedFile,
  type Reverted,
  type RevertedFile,
  revertFiles,
  undoRevert,
} from "../changes/revert-files.ts";
import { inform, isAgreed, offer } from "../dialogs.ts";
import { showError, translate } from "../messages.ts";
import { title as oneTitle, withoutIcons, withoutLinks } from "../plain-text.ts";
import { askChoice } from "../quick-input.ts";
import { shownPath, worktreeDirectory } from "../worktrees/isolated-task.ts";
import { BACK } from "../wizard.ts";
import type { CommandContext, ReviewContext } from "./command.ts";
import { type ChangedBy, pickChanges, pickChildren, readChanges, pickConnected } from "./pick.ts";

export async function showChanges(context: ReviewContext, argument: unknown): Promise<void> {
  const title = vscode.l10n.t("Show Changes");
  const child = (await pickConnected(context, argument, { title }))?.child;
  const changes = child && (await readChanges(context, child));
  if (!changes) return;
  // The diff editor's documents get their texts from the review, so it is shown first.
  await (await context.review()).show(child, changes);
  await showInEditor(child, changes, worktreeDirectory(context.known, child.id));
}

/** What a task changed in a file. */
interface ComparedChange {
  readonly task: Child;
  readonly change: FileChange;
}

/** Shows what several tasks changed in a file, below each other. */
export async function compareChanges(
  context: ReviewContext,
  argument: unknown,
  selection: unknown,
): Promise<void> {
  const title = vscode.l10n.t("Compare Changes");
  const tasks = await pickChildren(context, argument, selection, { title, accepts: isTask });
  const byPath = new Map<string, { readonly path: string; readonly changes: ComparedChange[] }>();
  for (const task of tasks) {
    const changes = await readChanges(context, task);
    if (!changes) return;
    for (const change of changes.files) {
      const worktree = worktreeDirectory(context.known, task.id);
      const path = shownPath(change.path, worktree, false);
      const folder =
        worktree === undefined
          ? vscode.workspace.getWorkspaceFolder(vscode.Uri.file(change.path))
          : context.folders.of(task.id);
      // Several folders can have a file of this path.
      const key = `${String(folder?.uri)} ${path}`;
      const shown = byPath.get(key) ?? { path, changes: [] };
      shown.changes.push({ task, change });
      byPath.set(key, shown);
    }
  }
  const shared = [...byPath.values()].filter(
    ({ changes }) => new Set(changes.map(({ task }) => task)).size > 1,
  );
  if (shared.length === 0)
    return tasks.length > 0
      ? inform(vscode.l10n.t("No file was changed by more than one of these tasks."))
      : undefined;
  const choices = shared.map((value) => ({
    label: withoutIcons(value.path),
    description: withoutIcons(value.changes.map(({ task }) => oneTitle(task.description)).join(" · ")),
    value,
  }));
  const placeholder = vscode.l10n.t("Select a file that several tasks changed");
  const picked = shared.length === 1 ? choices[0]?.value : await askChoice({ title, placeholder, choices });
  if (!picked || picked === BACK) return;
  const resources = picked.changes.map(({ task, change: { path, before, after } }) => {
    const name = vscode.Uri.file(`/${oneTitle(task.description).replaceAll("/", "-")}/${picked.path}`);
    const side = (of: "before" | "after"): vscode.Uri => sideUri(name, { taskID: task.id, path, side: of });
    return [
      name,
      before.kind === "absent" ? undefined : side("before"),
      after.kind === "absent" ? undefined : side("after"),
    ];
  });
  await vscode.commands.executeCommand("vscode.changes", basename(picked.path), resources);
}

export async function openChange(context: CommandContext, node: unknown): Promise<void> {
  if (node instanceof ChangeNode)
    await showChange(node.title, node.taskID, node.change, worktreeDirectory(context.known, node.taskID));
}

export async function closeChanges({ review }: ReviewContext): Promise<void> {
  (await review()).close();
}

export async function acceptChange(context: ReviewContext, argument: unknown): Promise<void> {
  // All changes are those that the user sees listed; a task's ID stands for what is read now.
  const rows = typeof argument === "string" ? [] : (await context.review()).rows;
  const target = await pickChanges(context, argument, vscode.l10n.t("Accept Changes"));
  if (target?.change) await accept(context, target, [target.change]);
  else if (target) await acceptAll(context, target, rows);
}

async function acceptAll(
  context: ReviewContext,
  target: ChangedBy,
  rows: readonly ChangeNode[],
): Promise<void> {
  const listed = rows.filter(({ taskID }) => taskID === target.child.id);
  const pending = await pendingOf(context, target);
  // What has changed since it was listed stays to be reviewed.
  const files = pending.filter(
    ({ path, after }) =>
      listed.length === 0 ||
      listed.some(({ change }) => change.path === path && isDeepStrictEqual(change.after, after)),
  );
  await accept(context, target, files);
  if (pending.length > 0 && files.length === 0)
    return inform(vscode.l10n.t("These changes have changed since they were listed. Review them again."));
  showAccepted(context, target, files).catch((error: unknown) => showError(error, context.logger));
}

/** Accepts changes: the files stay as they are and leave the list. */
export async function accept(
  context: ReviewContext,
  { child, changes }: ChangedBy,
  files: readonly FileChange[],
): Promise<void> {
  const review = await context.review();
  const worktree = worktreeDirectory(context.known, child.id);
  const placed = files.map(async (change) => ({ change, present: await presentFile(change.path, worktree) }));
  review.accept(child.id, await Promise.all(placed));
  await review.update(child, changes);
}

/** The changes of a task that were neither accepted nor reverted yet. */
export async function pendingOf(
  { review }: ReviewContext,
  { child, changes }: ChangedBy,
): Promise<readonly FileChange[]> {
  return (await (await review()).pending(child.id, changes.files)).map(({ change }) => change);
}

async function showAccepted(
  context: ReviewContext,
  { child, changes }: ChangedBy,
  accepted: readonly FileChange[],
): Promise<void> {
  if (accepted.length === 0) return inform(vscode.l10n.t("No changes left to review."));
  const message =
    accepted.length === 1
      ? vscode.l10n.t("Accepted 1 change. The file is kept as it is.")
      : vscode.l10n.t("Accepted {0} changes. The files are kept as they are.", accepted.length);
  if (!(await offer(message, vscode.l10n.t("Undo")))) return;
  const review = await context.review();
  review.unaccept(
    child.id,
    accepted.map(({ path }) => path),
  );
  await review.show(child, await newest(context, { child, changes }));
}

/** What the task changed by now, or without a connection what was known before. */
async function newest(context: ReviewContext, { child, changes }: ChangedBy): Promise<SessionChanges> {
  if (context.folders.of(child.id)?.connector.state.kind !== "connected") return changes;
  return (await readChanges(context, child).catch(() => undefined)) ?? changes;
}

/** The number of files that a confirmation names. */
const NAMED_FILES = 12;

/** The result of a revert for programs. */
export interface RevertResult {
  /** Absolute paths. */
  readonly reverted: readonly string[];
  readonly refused: readonly {
    readonly path: string;
    readonly reason: RefusedFile["reason"];
    /** The reason and the remedy, in a sentence. */
    readonly message: string;
  }[];
}

type Planned = readonly { readonly change: FileChange; readonly plan: RevertPlan }[];

export async function revertChange(context: ReviewContext, argument: unknown): Promise<void> {
  const target = await pickChanges(context, argument, vscode.l10n.t("Revert Changes"));
  if (!target) return;
  const { child, change } = target;
  if (!change) return revertAll(context, target);
  const [planned] = await planAll(context, target, [change]);
  if (!planned) return;
  const { plan } = planned;
  const name = basename(change.path);
  if (plan.kind === "refused") return refuse(context, target, change, plan.why);
  if (plan.kind === "nothing")
    return inform(vscode.l10n.t("{0} no longer contains any of the task's changes.", name));
  if (
    plan.kind === "delete" &&
    !(await isRevertAgreed(vscode.l10n.t('Delete {0}, created by "{1}"?', name, child.description)))
  )
    return;
  if (
    plan.kind === "write" &&
    plan.isMerged &&
    !(await isRevertAgreed(vscode.l10n.t("{0} has changed since. Revert only the task's changes?", name)))
  )
    return;
  await finish(context, target, [change]);
}

async function revertAll(context: ReviewContext, target: ChangedBy): Promise<void> {
  const files = await pendingOf(context, target);
  if (files.length === 0) return inform(vscode.l10n.t("No changes left to review."));
  const planned = await planAll(context, target, files);
  if (await isAgreedToAll(context, target, planned)) await finish(context, target, files);
}

async function planAll(
  context: ReviewContext,
  target: ChangedBy,
  files: readonly FileChange[],
): Promise<Planned> {
  const plan = (await context.review()).planner(target.child.id);
  const worktree = worktreeDirectory(context.known, target.child.id);
  return Promise.all(
    files.map(async (change) => ({
      change,
      plan: await plan(change, await presentFile(change.path, worktree)),
    })),
  );
}

async function revert(
  context: ReviewContext,
  target: ChangedBy,
  files: readonly FileChange[],
): Promise<Reverted> {
  const { child, changes } = target;
  const review = await context.review();
  const worktree = worktreeDirectory(context.known, child.id);
  const done = await revertFiles(files, review.planner(child.id), worktree);
  await review.update(child, changes);
  return done;
}

/** Reverts for a program: without asking, and only where no one else's work is lost. */
export async function revertNow(
  context: ReviewContext,
  target: ChangedBy,
  files: readonly FileChange[],
): Promise<RevertResult> {
  const { reverted, refused } = await revert(context, target, files);
  return {
    reverted: reverted.map(({ path }) => path),
    refused: refused.map(({ path, reason, why }) => ({ path, reason, message: translate(why) })),
  };
}

/** Reverts what the user agreed to. Reads the changes again, because work may have continued during the question. */
async function finish(
  context: ReviewContext,
  target: ChangedBy,
  files: readonly FileChange[],
): Promise<void> {
  const changes = await readChanges(context, target.child);
  if (!changes) return;
  const now = { ...target, changes };
  const paths = new Set(files.map(({ path }) => path));
  const done = await revert(
    context,
    now,
    changes.files.filter(({ path }) => paths.has(path)),
  );
  tell(context, now, done).catch((error: unknown) => showError(error, context.logger));
}

async function tell(
  context: ReviewContext,
  target: ChangedBy,
  { reverted, refused }: Reverted,
): Promise<void> {
  const [failed] = refused;
  if (failed)
    void vscode.window.showWarningMessage(
      withoutLinks(
        refused.length === 1
          ? vscode.l10n.t("Not reverted: {0}", translate(failed.why))
          : vscode.l10n.t("{0} files weren't reverted. First: {1}", refused.length, translate(failed.why)),
      ),
    );
  const [first] = reverted;
  if (!first) return;
  const message =
    reverted.length === 1
      ? vscode.l10n.t("Reverted {0}.", basename(first.path))
      : vscode.l10n.t("Reverted {0} files.", reverted.length);
  if (await offer(message, vscode.l10n.t("Undo"))) await undoAll(context, target, reverted);
}

async function undoAll(
  context: ReviewContext,
  { child, changes }: ChangedBy,
  reverted: readonly RevertedFile[],
): Promise<void> {
  const failed = await undoRevert(reverted, worktreeDirectory(context.known, child.id));
  if (failed.length > 0)
    void vscode.window.showWarningMessage(
      withoutLinks(
        vscode.l10n.t(
          "Not restored because they have changed since, or can't be written: {0}",
          failed.map((path) => basename(path)).join(", "),
        ),
      ),
    );
  await (await context.review()).show(child, await newest(context, { child, changes }));
}

/** Says why a file can't be reverted, and offers the diff editor, with which users can revert parts of it. */
async function refuse(
  context: ReviewContext,
  target: ChangedBy,
  { path, before }: FileChange,
  why: Sentence,
): Promise<void> {
  const compare = vscode.l10n.t("Compare");
  const worktree = worktreeDirectory(context.known, target.child.id);
  const isComparable = (await presentFile(path, worktree)).kind === "file" && before.kind === "text";
  const message = withoutLinks(vscode.l10n.t("Not reverted: {0}", translate(why)));
  const choice = await vscode.window.showWarningMessage(message, ...(isComparable ? [compare] : []));
  if (choice !== compare) return;
  const file = vscode.Uri.file(path);
  const former = sideUri(namelike(file, worktree), { taskID: target.child.id, path, side: "before" });
  const title = vscode.l10n.t("{0} (Before the Task ↔ Now)", basename(path));
  await vscode.commands.executeCommand("vscode.diff", former, file, title);
}

function isRevertAgreed(question: string): Promise<boolean> {
  return isAgreed(question, vscode.l10n.t("Revert"));
}

async function isAgreedToAll(context: ReviewContext, target: ChangedBy, planned: Planned): Promise<boolean> {
  const lines = (...kinds: readonly RevertPlan["kind"][]): readonly string[] =>
    planned
      .filter(({ plan }) => kinds.includes(plan.kind))
      .map(({ change, plan }) => planLine(context, target, change, plan));
  const [revertible, refused] = [lines("write", "delete"), lines("refused")];
  const detail = [
    ...excerptOf(revertible),
    ...(refused.length > 0 ? ["", vscode.l10n.t("Not changed:"), ...excerptOf(refused)] : []),
  ].join("\n");
  if (revertible.length === 0) {
    const question = vscode.l10n.t("None of these changes can be reverted.");
    await vscode.window.showWarningMessage(question, { modal: true, detail: withoutLinks(detail.trim()) });
    return false;
  }
  const question =
    revertible.length === 1
      ? vscode.l10n.t('Revert one file that "{0}" changed?', target.child.description)
      : vscode.l10n.t('Revert {0} files that "{1}" changed?', revertible.length, target.child.description);
  return isAgreed(question, vscode.l10n.t("Revert All"), detail);
}

function planLine(context: ReviewContext, target: ChangedBy, { path }: FileChange, plan: RevertPlan): string {
  if (plan.kind === "refused") return translate(plan.why);
  const file = shownPath(path, worktreeDirectory(context.known, target.child.id));
  if (plan.kind === "delete") return vscode.l10n.t("{0}: deleted because the task created it", file);
  return plan.kind === "write" && plan.isMerged ? vscode.l10n.t("{0}: later changes are kept", file) : file;
}

function excerptOf(lines: readonly string[]): readonly string[] {
  if (lines.length <= NAMED_FILES) return lines;
  return [...lines.slice(0, NAMED_FILES), vscode.l10n.t("and {0} more", lines.length - NAMED_FILES)];
}
