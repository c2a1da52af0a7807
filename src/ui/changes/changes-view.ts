import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { type Child, isRunning } from "../../engine/subagent.ts";
import type { ContextKeys } from "../context-keys.ts";
import { inform } from "../dialogs.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { plainMarkdown, title as oneTitle } from "../plain-text.ts";
import { TreeNode } from "../tree/items.ts";
import { shownPath, worktreeDirectory } from "../worktrees/isolated-task.ts";
import { diffSides } from "./diff-sides.ts";

const CHANGES_VIEW = "asyncagents.changes";

/** A file that a task changed. */
export class ChangeNode extends TreeNode {
  constructor(
    readonly taskID: string,
    readonly change: FileChange,
    /** The title of its diff. */
    readonly title: string,
  ) {
    super();
  }
}

/** The row above the files of a task, which stands for all of them. */
export class AllChangesNode extends TreeNode {
  constructor(readonly taskID: string) {
    super();
  }
}

/** Lists the files of a task that are left to review. The view is visible only while there are such files. */
export class ChangesView implements vscode.Disposable, vscode.TreeDataProvider<ChangeNode | AllChangesNode> {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<ChangeNode | AllChangesNode>;
  readonly onDidChangeTreeData = this.changed.event;
  nodes: readonly ChangeNode[] = [];

  constructor(
    private readonly keys: ContextKeys,
    private readonly known: Pick<Tasks, "child" | "session">,
  ) {
    this.view = vscode.window.createTreeView(CHANGES_VIEW, { treeDataProvider: this });
  }

  /** @param title the title of the diffs */
  show(child: Child, title: string, changes: readonly FileChange[]): void {
    this.list(changes.map((change) => new ChangeNode(child.id, change, title)));
    this.view.description = oneLine(child.description);
  }

  clear(): void {
    this.list([]);
    this.view.description = "";
  }

  get selected(): ChangeNode | AllChangesNode | undefined {
    return this.view.visible ? this.view.selection[0] : undefined;
  }

  getChildren(node?: ChangeNode | AllChangesNode): (ChangeNode | AllChangesNode)[] {
    if (node) return node instanceof AllChangesNode ? [...this.nodes] : [];
    return this.nodes.slice(0, 1).map(({ taskID }) => new AllChangesNode(taskID));
  }

  getTreeItem(node: ChangeNode | AllChangesNode): vscode.TreeItem {
    if (node instanceof AllChangesNode) return allItem(node, this.nodes.length);
    const { path } = node.change;
    const file = vscode.Uri.file(path);
    const folder = dirname(shownPath(path, worktreeDirectory(this.known, node.taskID)));
    const facts = [kindOfChange(node.change), ...this.others(node.change)];
    const description = [folder === "." ? "" : folder, ...facts].filter(Boolean).join(" · ");
    const item = new vscode.TreeItem(basename(path));
    item.id = `${node.taskID} ${path}`;
    item.resourceUri = file;
    item.iconPath = vscode.ThemeIcon.File;
    item.description = description;
    item.contextValue = "change";
    item.tooltip = new vscode.MarkdownString(
      [path, ...facts, ...doubts(node.change)].map(plainMarkdown).join("\n\n"),
    );
    item.accessibilityInformation = { label: `${basename(path)} ${description}` };
    item.command = {
      command: "_asyncagents.openChange",
      title: vscode.l10n.t("Open Change"),
      arguments: [node],
    };
    return item;
  }

  dispose(): void {
    this.view.dispose();
    this.changed.dispose();
  }

  /** The others who changed the file. */
  private others({ isMixed, mixedWith }: FileChange): readonly string[] {
    if (!isMixed) return [];
    const names = mixedWith.map((id) => oneTitle(nameOf(this.known, id)));
    return [
      names.length > 0
        ? vscode.l10n.t('also changed by "{0}"', names.join(`", "`))
        : vscode.l10n.t("also changed by someone else"),
    ];
  }

  private list(nodes: readonly ChangeNode[]): void {
    this.nodes = nodes;
    this.keys.set("reviewing", nodes.length > 0);
    this.changed.fire();
  }
}

function allItem({ taskID }: AllChangesNode, count: number): vscode.TreeItem {
  const item = new vscode.TreeItem(vscode.l10n.t("All Changes"), vscode.TreeItemCollapsibleState.Expanded);
  item.id = taskID;
  item.description = String(count);
  item.contextValue = "change";
  return item;
}

function kindOfChange({ before, after }: FileChange): string {
  if (before.kind === "absent") return vscode.l10n.t("created");
  return after.kind === "absent" ? vscode.l10n.t("deleted") : vscode.l10n.t("edited");
}

function doubts({ isDoubtful }: FileChange): readonly string[] {
  return isDoubtful ? [vscode.l10n.t("May have been changed by another agent's commands.")] : [];
}

/** The name by which users know a session that changed a file. */
function nameOf(known: Pick<Tasks, "child" | "session">, sessionID: string): string {
  return known.child(sessionID)?.description ?? known.session(sessionID)?.title ?? sessionID;
}

/** The number of files that a message names. */
const NAMED_FILES = 5;

/** Opens the files that a session changed: a single one in the diff editor, several in the multi-diff editor. */
export async function showChanges(
  child: Child,
  { files, hasSnapshots }: SessionChanges,
  worktree?: string,
): Promise<void> {
  if (files.length === 0) return inform(nothingChanged(child, hasSnapshots));
  const title = changesTitle(child, hasSnapshots);
  const [only, ...others] = files;
  if (only && others.length === 0) {
    await showChange(title, child.id, only, worktree);
  } else {
    const resources = await Promise.all(
      files.map(async (change) => {
        const { file, original, modified } = await diffSides(child.id, change, worktree);
        const [before, after] = [change.before, change.after].map(({ kind }) => kind !== "absent");
        return [file, before ? original : undefined, after ? modified : undefined];
      }),
    );
    await vscode.commands.executeCommand("vscode.changes", title, resources);
  }
  const doubtful = files.filter(({ isDoubtful }) => isDoubtful).map(({ path }) => basename(path));
  if (doubtful.length > 0)
    inform(
      vscode.l10n.t(
        "Other agents ran commands at the same time, so these changes may be theirs: {0}",
        [...doubtful.slice(0, NAMED_FILES), ...(doubtful.length > NAMED_FILES ? ["…"] : [])].join(", "),
      ),
    );
}

/** Opens one changed file in the diff editor. */
export async function showChange(
  title: string,
  taskID: string,
  change: FileChange,
  worktree?: string,
): Promise<void> {
  const { file, original, modified } = await diffSides(taskID, change, worktree);
  await vscode.commands.executeCommand(
    "vscode.diff",
    original,
    modified,
    `${basename(file.fsPath)} (${title})`,
  );
}

export function changesTitle(child: Child, hasSnapshots: boolean): string {
  return hasSnapshots
    ? vscode.l10n.t("Changes: {0}", child.description)
    : vscode.l10n.t("Changes by edit tools: {0}", child.description);
}

function nothingChanged(child: Child, hasSnapshots: boolean): string {
  const sentence = isRunning(child)
    ? vscode.l10n.t('"{0}" hasn\'t changed any files yet.', child.description)
    : vscode.l10n.t('"{0}" didn\'t change any files.', child.description);
  if (hasSnapshots) return sentence;
  const limit = vscode.l10n.t(
    "Changes by commands aren't shown: OpenCode takes snapshots only in Git repositories.",
  );
  return `${sentence} ${limit}`;
}
