import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import { shortID, type Task } from "../../engine/task.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { Folder } from "../folders/folder.ts";
import { withoutIcons } from "../plain-text.ts";
import { arrange, isBatchRow } from "../tree/arrangement.ts";
import { batchMembers } from "../tree/family.ts";
import { BatchNode, ChildNode } from "../tree/nodes.ts";
import { childIcon } from "../tree/task-item.ts";
import { activity, elapsed, statusWord } from "../tree/words.ts";
import type { CommandContext } from "./command.ts";

export interface PickOptions<T extends Child> {
  readonly title: string;
  /** Which ones the command can work on; by default any. */
  readonly accepts?: (child: T) => boolean;
  /** Said when there is none of them. */
  readonly none?: string;
}

/** The task a command is about: its argument (a row of the tree, a task, an ID), or one that the person picks. */
export async function pickTask(
  context: CommandContext,
  argument: unknown,
  { accepts = () => true, ...texts }: PickOptions<Task>,
): Promise<Task | undefined> {
  if (argument !== undefined) return context.known.find(reference(argument));
  const picked = await pickFrom(context, {
    ...texts,
    accepts: (child) => isTask(child) && accepts(child),
  });
  return picked && isTask(picked) ? picked : undefined;
}

/** As {@link pickTask}, subagents of others included; of those a program gives the whole ID. */
export async function pickChild(
  context: CommandContext,
  argument: unknown,
  options: PickOptions<Child>,
): Promise<Child | undefined> {
  return argument === undefined ? pickFrom(context, options) : findChild(context, argument);
}

/** The task or subagent that is named: as a row of the tree, itself or by its ID. */
export function findChild({ known }: Pick<CommandContext, "known">, argument: unknown): Child {
  const id = reference(argument);
  return known.child(id) ?? known.find(id);
}

/** Connects the folder that a task is of, as a row of the tree, itself or by its ID; without one the current folder. */
export async function connectFor(
  { known, folders }: Pick<CommandContext, "known" | "folders">,
  argument: unknown,
): Promise<void> {
  await connectedFolder(folders, folderOf(known, argument));
}

/** Undefined: none is named, or no folder knows it yet. */
function folderOf(known: CommandContext["known"], argument: unknown): Folder | undefined {
  if (argument === undefined) return undefined;
  return known.folderOf(argument instanceof BatchNode ? argument.parentSessionID : reference(argument));
}

/** Everything that a menu was opened on: the selected rows, or the one clicked; of a batch its tasks. */
export function selectedChildren(
  { known }: Pick<CommandContext, "known">,
  clicked: unknown,
  selection: unknown,
): readonly Child[] | undefined {
  if (!isAboutChildren(clicked)) return undefined;
  const selected = Array.isArray(selection) ? selection.filter(isAboutChildren) : [];
  const nodes = selected.includes(clicked) ? selected : [clicked];
  const children = nodes.flatMap((node) =>
    node instanceof BatchNode
      ? batchMembers(known, node.parentSessionID, node.batchID)
      : (known.child(node.id) ?? []),
  );
  return [...new Set(children)];
}

function isAboutChildren(node: unknown): node is ChildNode | BatchNode {
  return node instanceof ChildNode || node instanceof BatchNode;
}

async function pickFrom(
  { known, folders, list }: CommandContext,
  {
    title,
    accepts = () => true,
    none = vscode.l10n.t("There are no tasks in this session."),
  }: PickOptions<Child>,
): Promise<Child | undefined> {
  const items: (vscode.QuickPickItem & { readonly child: Child })[] = [];
  const seen = new Set<string>();
  const add = (parentID: string, above?: Child): void => {
    // Broken metadata can make a session its own ancestor.
    if (seen.has(parentID)) return;
    seen.add(parentID);
    for (const row of arrange(known, known.children(parentID), list.sortOrder))
      for (const child of isBatchRow(row) ? row.members : [row]) {
        if (accepts(child)) items.push(pickItem(child, above));
        add(child.id, child);
      }
  };
  for (const { session } of folders.all) if (session.id !== undefined) add(session.id);
  if (items.length === 0) {
    void vscode.window.showInformationMessage(none);
    return undefined;
  }
  const picked = await vscode.window.showQuickPick(items, {
    title,
    matchOnDescription: true,
    // A panel that opens late would take the list away.
    ignoreFocusOut: true,
    placeHolder: vscode.l10n.t("Which task?"),
  });
  return picked?.child;
}

function pickItem(child: Child, above: Child | undefined): vscode.QuickPickItem & { readonly child: Child } {
  const now = Date.now();
  return {
    label: withoutIcons(oneLine(child.description)),
    description: withoutIcons(
      [child.agent, activity(child, now) ?? statusWord(child), elapsed(child, now), shortID(child.id)]
        .filter(Boolean)
        .join(" · "),
    ),
    ...(above && { detail: vscode.l10n.t("below {0}", withoutIcons(oneLine(above.description))) }),
    iconPath: childIcon(child),
    child,
  };
}

/** The ID, or the beginning or end of one, that an argument names. */
function reference(argument: unknown): string {
  if (typeof argument === "string") return argument;
  if (
    typeof argument === "object" &&
    argument !== null &&
    "id" in argument &&
    typeof argument.id === "string"
  )
    return argument.id;
  throw new Refusal("invalid-argument", "The argument must be a task or its ID.");
}
