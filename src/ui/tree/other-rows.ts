import * as vscode from "vscode";
import { enumerate, translate } from "../messages.ts";
import { title } from "../plain-text.ts";
import { LaunchingNode, type UnreadableNode } from "./items.ts";
import type { Disposable } from "../../engine/event.ts";
import type { TaskChange } from "../../engine/registry.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import { batchMembers } from "./family.ts";

/** The row of what is being launched. */
export function launchingItem(node: LaunchingNode): vscode.TreeItem {
  return plainItem(node.title, vscode.l10n.t("launching…"), new vscode.ThemeIcon("loading~spin"));
}

/** The row of a session whose record can't be read. */
export function unreadableItem({ task }: UnreadableNode): vscode.TreeItem {
  const icon = new vscode.ThemeIcon("question", new vscode.ThemeColor("list.warningForeground"));
  const item = plainItem(task.title, vscode.l10n.t("unreadable"), icon);
  item.id = task.sessionID;
  item.tooltip = vscode.l10n.t(
    "Can't read the record of this task; it isn't changed: {0}",
    title(translate(task.reason)),
  );
  item.contextValue = "unreadable";
  return item;
}

function plainItem(text: string, description: string, iconPath: vscode.ThemeIcon): vscode.TreeItem {
  const name = title(text);
  const label = enumerate([name, description]);
  return Object.assign(new vscode.TreeItem(name), {
    description,
    iconPath,
    accessibilityInformation: { label },
  });
}

/** The rows of what is being launched. Each gives way to that of its task or batch, which comes before the launch ends. */
export class LaunchingRows implements Disposable {
  /** With the time of the launch, in milliseconds since 1970; the oldest first. */
  private readonly nodes = new Map<LaunchingNode, number>();
  private readonly subscription: Disposable;

  constructor(
    private readonly known: Tasks,
    private readonly folders: Folders,
    private readonly redraw: (folder: Folder) => void,
  ) {
    this.subscription = known.onDidChange((change) => this.giveWay(change));
  }

  /** Shows a row until it is disposed of, or until the task has one. */
  show(what: string, folder: Folder): Disposable {
    const node = new LaunchingNode(what, folder);
    this.nodes.set(node, Date.now());
    this.redraw(folder);
    return { dispose: () => this.remove(node) };
  }

  in(folder: Folder | undefined): LaunchingNode[] {
    return [...this.nodes.keys()].filter((each) => each.folder === folder);
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private giveWay({ before, after }: TaskChange): void {
    if (this.nodes.size === 0 || before || after?.launchedBy !== "person") return;
    const { parentSessionID, batchID, createdAt } = after;
    // The other tasks of a batch were launched with its first one.
    if (batchMembers(this.known, parentSessionID, batchID).length > 1) return;
    const [oldest] = this.in(this.folders.of(parentSessionID));
    if (oldest && createdAt >= (this.nodes.get(oldest) ?? 0)) this.remove(oldest);
  }

  private remove(node: LaunchingNode): void {
    if (this.nodes.delete(node)) this.redraw(node.folder);
  }
}

/** What the editor still asks for after it is gone. */
export function goneItem(): vscode.TreeItem {
  return new vscode.TreeItem(vscode.l10n.t("No longer available"));
}
