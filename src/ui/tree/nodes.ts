import type { Folder } from "../folders/folder.ts";
import type { Folders } from "../folders/folders.ts";
import type { UnreadableTask } from "../../engine/registry.ts";

/** A row of the tree. */
export abstract class TreeNode {}

/** A folder of the workspace, by its address; there are such rows only where there are several. */
export class FolderNode extends TreeNode {
  constructor(readonly uri: string) {
    super();
  }
}

/** The task, or the subagent of others, whose session has this ID. */
export class ChildNode extends TreeNode {
  constructor(readonly id: string) {
    super();
  }
}

/** The tasks of a batch below one session. */
export class BatchNode extends TreeNode {
  constructor(
    readonly batchID: string,
    readonly parentSessionID: string,
  ) {
    super();
  }
}

/** A session whose record cannot be used. */
export class UnreadableNode extends TreeNode {
  constructor(readonly task: UnreadableTask) {
    super();
  }
}

export type Node = FolderNode | ChildNode | BatchNode | UnreadableNode;

/** The folder that a row belongs to. Undefined: it is gone, or was no row. */
export function folderOf(folders: Folders, node: unknown): Folder | undefined {
  if (node instanceof FolderNode) return folders.all.find(({ uri }) => uri.toString() === node.uri);
  if (node instanceof ChildNode) return folders.of(node.id);
  if (node instanceof BatchNode) return folders.of(node.parentSessionID);
  return node instanceof UnreadableNode ? folders.of(node.task.sessionID) : undefined;
}
