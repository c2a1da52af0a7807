import * as vscode from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { type Child, isCleared } from "../../engine/subagent.ts";
import { shortID, type Task } from "../../engine/task.ts";
import { connectedFolder, type Folder } from "../folders/folders.ts";
import { inform } from "../dialogs.ts";
import { showIfLong } from "../messages.ts";
import { withoutIcons } from "../plain-text.ts";
import { arrange, isBatchRow } from "../tree/arrangement.ts";
import { batchMembers, isQueuedChild, waitsForUser } from "../tree/family.ts";
import { BatchNode, ChildNode, batchLabel, childIcon } from "../tree/items.ts";
import { activity, elapsed, statusWord } from "../tree/words.ts";
import type { TaskContext, ReviewContext } from "./command.ts";
import { basename } from "node:path";
import { askToRemake, isIsolated, isThere, type IsolatedTask } from "../worktrees/isolated-task.ts";
import { invalidArgument, Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import type { ReviewedFile } from "../changes/change-side.ts";
import { AllChangesNode, ChangeNode } from "../changes/changes-view.ts";

export interface PickOptions {
  readonly title: string;
  /** Which tasks and subagents the command accepts; by default all. */
  readonly accepts?: (child: Child) => boolean;
  /** The message if the command accepts none of them. */
  readonly none?: string;
}

/** The task or subagent that a command is about: the one its argument names, otherwise one that the user picks. */
export async function pickChild(
  context: TaskContext,
  argument: unknown,
  options: PickOptions,
): Promise<Child | undefined> {
  const reference = referenceOf(argument) ?? (await pickFrom(context, options, {}))?.[0];
  return reference === undefined ? undefined : findChild(context, reference);
}

/** Like {@link pickChild}, but also connects the folder and returns it. */
export async function pickConnected(
  context: TaskContext,
  argument: unknown,
  options: PickOptions,
): Promise<{ readonly child: Child; readonly folder: Folder } | undefined> {
  const { known, folders } = context;
  const reference = referenceOf(argument);
  // What is offered depends on the connected folders. Any is enough, as the one of what is picked is connected then.
  if (reference !== undefined || !folders.all.some(({ connector }) => connector.state.kind === "connected"))
    await connectedFolder(folders, known.folderOf(reference));
  const child = await pickChild(context, argument, options);
  return child && { child, folder: await connectedFolder(folders, folders.of(child.id)) };
}

/** The isolated task that a command is about, and its folder, which is connected. Undefined if the user cancels. */
export async function pickIsolated(
  context: TaskContext,
  argument: unknown,
  title: string,
): Promise<{ readonly task: IsolatedTask; readonly folder: Folder } | undefined> {
  const picked = await pickConnected(context, argument, {
    title,
    accepts: isIsolated,
    none: vscode.l10n.t("No tasks in worktrees."),
  });
  if (!picked) return undefined;
  const { child, folder } = picked;
  if (isIsolated(child)) return { task: child, folder };
  throw new Refusal("no-worktree", sentence('"{0}" doesn\'t have its own worktree.', child.description));
}

/** Like {@link pickIsolated}, but if the worktree is gone, offers to make it again. */
export async function pickPresent(
  context: TaskContext,
  argument: unknown,
  title: string,
): ReturnType<typeof pickIsolated> {
  const picked = await pickIsolated(context, argument, title);
  if (!picked) return undefined;
  const { task, folder } = picked;
  return (await isThere(task)) || (await askToRemake(folder, task)) ? picked : undefined;
}

/**
 * The tasks and subagents that a command is about: those in the rows of the menu (the selected rows or the clicked one;
 * for a batch its tasks) that the command accepts, otherwise the task named by the argument, or a task or batch that the
 * user picks. Empty if the user cancels.
 */
export async function pickChildren(
  context: TaskContext,
  argument: unknown,
  selection: unknown,
  options: PickOptions,
): Promise<readonly Child[]> {
  const { known } = context;
  const rows: readonly unknown[] =
    Array.isArray(selection) && selection.includes(argument) ? selection : [argument];
  const children = new Set(
    rows.flatMap((row) => {
      if (row instanceof BatchNode) return batchMembers(known, row.parentSessionID, row.batchID);
      return row instanceof ChildNode ? (known.child(row.id) ?? []) : [];
    }),
  );
  const accepted = [...children].filter(options.accepts ?? (() => true));
  if (accepted.length > 0) return accepted;
  // A task that isn't accepted is passed on, so that the command can say why.
  const [child] = children;
  if (child) return [child];
  const reference = referenceOf(argument);
  const picked = reference === undefined ? await pickFrom(context, options, { batches: true }) : [reference];
  return (picked ?? []).map((id) => findChild(context, id));
}

/** Finds a task or subagent by its ID, or by the beginning or end of the ID. */
export function findChild({ known }: Pick<TaskContext, "known">, reference: string): Child {
  return known.child(reference) ?? known.find(reference);
}

/** The ID, or its beginning or end, from a row of the tree or a keybinding. */
export function referenceOf(argument: unknown): string | undefined {
  if (argument instanceof ChildNode) return argument.id;
  return typeof argument === "string" ? argument : undefined;
}

type PickItem = vscode.QuickPickItem & { readonly ids: readonly string[] };

/**
 * The IDs of what the user picks: a task or subagent, or if offered with them, a session or the tasks of a batch. What is
 * in front of the user comes first, after the session. Undefined if the user cancels.
 */
export async function pickFrom(
  { known, folders, list, frontID }: TaskContext,
  { title, accepts = () => true, none = vscode.l10n.t("No tasks in this session.") }: PickOptions,
  { sessionID, batches = false }: { readonly sessionID?: string | undefined; readonly batches?: boolean },
): Promise<readonly string[] | undefined> {
  const items: PickItem[] = [];
  if (sessionID !== undefined)
    items.push({
      label: withoutIcons(oneLine(known.session(sessionID)?.title ?? "")),
      description: vscode.l10n.t("active session"),
      iconPath: new vscode.ThemeIcon("comment-discussion"),
      ids: [sessionID],
    });
  const seen = new Set<string>();
  const addItem = (child: Child): void =>
    void items.push(pickItem(child, known.child(child.parentSessionID)));
  const add = (parentID: string): void => {
    // Broken metadata can make a session its own ancestor.
    if (seen.has(parentID)) return;
    seen.add(parentID);
    for (const row of arrange(known, known.children(parentID), list.sortOrder)) {
      const members = isBatchRow(row) ? row.members.filter(accepts) : [];
      if (batches && members.length > 1) items.push(batchPickItem(members));
      for (const child of isBatchRow(row) ? row.members : [row]) {
        if (accepts(child)) addItem(child);
        add(child.id);
      }
    }
  };
  for (const id of folders.sessionIDs) add(id);
  const shown = known.child(frontID() ?? "");
  const isFront = ({ ids }: PickItem): boolean => ids.length === 1 && ids[0] === shown?.id;
  // The output of a task of another session can be in front of the user.
  if (shown && !isCleared(shown) && accepts(shown) && !items.some(isFront)) addItem(shown);
  if (items.length === 0) {
    inform(none);
    return undefined;
  }
  // The first item is active, so Enter chooses it: the session if it is offered, else what is in front of the user.
  const first = sessionID === undefined ? 0 : 1;
  const front = items.findIndex(isFront);
  if (front > first) items.splice(first, 0, ...items.splice(front, 1));
  const picked = await vscode.window.showQuickPick(items, {
    title,
    matchOnDescription: true,
    // Otherwise a panel that opens late would close the list.
    ignoreFocusOut: true,
    placeHolder:
      sessionID === undefined ? vscode.l10n.t("Select a task") : vscode.l10n.t("Select a task or session"),
  });
  return picked?.ids;
}

/** The ID of one of these running tasks and subagents that the user picks, listed by what they are doing. */
export async function pickActive(running: readonly Child[]): Promise<string | undefined> {
  const waiting = running.filter(waitsForUser);
  const queued = running.filter(isQueuedChild).sort((a, b) => a.createdAt - b.createdAt);
  const working = running.filter((child) => !waiting.includes(child) && !queued.includes(child));
  const section = (label: string, children: readonly Child[]): readonly PickItem[] =>
    children.length === 0
      ? []
      : [
          { label, kind: vscode.QuickPickItemKind.Separator, ids: [] },
          ...children.map((child) => pickItem(child, undefined)),
        ];
  const items = [
    ...section(vscode.l10n.t("needs you"), waiting),
    ...section(vscode.l10n.t("running"), working),
    ...section(vscode.l10n.t("queued"), queued),
  ];
  if (items.length === 0) {
    inform(vscode.l10n.t("No running tasks."));
    return undefined;
  }
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Running Agents"),
    matchOnDescription: true,
    placeHolder: vscode.l10n.t("Select a task"),
  });
  return picked?.ids[0];
}

function batchPickItem(tasks: readonly Task[]): PickItem {
  return {
    label: withoutIcons(batchLabel(tasks)),
    description: vscode.l10n.t("batch of {0} tasks", tasks.length),
    iconPath: new vscode.ThemeIcon("layers"),
    ids: tasks.map(({ id }) => id),
  };
}

function pickItem(child: Child, above: Child | undefined): PickItem {
  const now = Date.now();
  return {
    label: withoutIcons(oneLine(child.description)),
    description: withoutIcons(
      [child.agent, activity(child) ?? statusWord(child), elapsed(child, now), shortID(child.id)]
        .filter(Boolean)
        .join(" · "),
    ),
    ...(above && { detail: vscode.l10n.t("subagent of {0}", withoutIcons(oneLine(above.description))) }),
    iconPath: childIcon(child),
    ids: [child.id],
  };
}

/** A task or subagent and what it changed. */
export interface ChangedBy {
  readonly child: Child;
  readonly changes: SessionChanges;
}

/** The changes that a command is about: a file, or all that are left to review if there is none. */
export type PickedChanges = ChangedBy & { readonly change: FileChange | undefined };

/**
 * The changes that a command is about: those of the given row or diff editor; for a task ID, those that the user picks;
 * for `true`, as the keys in the list of changes have it, those of its selected row; without an argument, those in front
 * of the user, otherwise those of the listed task, or of one that they pick.
 */
export async function pickChanges(
  context: ReviewContext,
  argument: unknown,
  title: string,
): Promise<PickedChanges | undefined> {
  const { listedTaskID } = await context.review();
  const shown = typeof argument === "string" ? undefined : await shownChanges(context, argument, title);
  const taskID = shown?.taskID ?? (typeof argument === "string" ? argument : listedTaskID);
  const child = (await pickConnected(context, taskID, { title }))?.child;
  const changes = child && (await readChanges(context, child));
  if (!changes) return undefined;
  const changed = { child, changes };
  if (shown)
    return { ...changed, change: shown.path === undefined ? undefined : changeAt(changed, shown.path) };
  const picked = await pickFile(changes.files, title);
  return picked && { ...changed, ...picked };
}

/** The change to a file, given its path (absolute or relative to the workspace). Throws a {@link Refusal}. */
export function changeAt({ child, changes }: ChangedBy, path: string): FileChange {
  const change = changes.files.find(
    (file) => file.path === path || vscode.workspace.asRelativePath(file.path, false) === path,
  );
  if (change) return change;
  throw invalidArgument(sentence('"{1}" didn\'t change the file "{0}".', path, child.description));
}

interface ShownChanges {
  readonly taskID: string;
  readonly path?: string;
}

async function shownChanges(
  context: ReviewContext,
  argument: unknown,
  title: string,
): Promise<ShownChanges | undefined> {
  const review = await context.review();
  if (argument instanceof vscode.Uri) return pickShown(context, review.shownChanges(argument), title);
  const row =
    argument instanceof ChangeNode || argument instanceof AllChangesNode
      ? argument
      : review.current(argument === true);
  return row instanceof ChangeNode ? { taskID: row.taskID, path: row.change.path } : row;
}

/** Asks if several diffs of the same file are visible, because it is unknown to which of them the button belongs. */
async function pickShown(
  { known }: ReviewContext,
  shown: readonly ReviewedFile[],
  title: string,
): Promise<ReviewedFile | undefined> {
  if (shown.length <= 1) return shown[0];
  const items = shown.map((file) => ({
    label: withoutIcons(oneLine(known.child(file.taskID)?.description ?? file.taskID)),
    file,
  }));
  const placeHolder = vscode.l10n.t("Select a task");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder });
  if (picked) return picked.file;
  throw new Refusal("cancelled-by-caller", sentence("No task was selected."));
}

async function pickFile(
  files: readonly FileChange[],
  title: string,
): Promise<Pick<PickedChanges, "change"> | undefined> {
  if (files.length === 0) {
    inform(vscode.l10n.t("The task didn't change any files."));
    return undefined;
  }
  const all = { label: vscode.l10n.t("All Changes"), change: undefined };
  const items = files.map((change) => ({
    label: withoutIcons(basename(change.path)),
    description: withoutIcons(vscode.workspace.asRelativePath(change.path)),
    change,
  }));
  const placeHolder = vscode.l10n.t("Select a file");
  return vscode.window.showQuickPick([all, ...items], { title, placeHolder, matchOnDescription: true });
}

/** Reads the changes of a task or subagent; shows progress if that takes long. Undefined if the user cancels. */
export async function readChanges(
  { review }: ReviewContext,
  child: Child,
): Promise<SessionChanges | undefined> {
  return showIfLong(vscode.l10n.t("Reading changes…"), (await review()).read(child), true);
}
