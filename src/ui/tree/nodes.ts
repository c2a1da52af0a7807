import type { Folder } from "../folders/folder.ts";
import type { Folders } from "../folders/folders.ts";
import type { UnreadableTask } from "../../engine/registry.ts";

/** A row of the tree. */
export abstract class TreeNode {}

/** A workspace folder, by its address; used only if there are several folders. */
export class FolderNode extends TreeNode {
  constructor(readonly uri: string) {
    super();
  }
}

/** A task, or a subagent launched elsewhere, by the ID of its session. */
export class ChildNode extends TreeNode {
  constructor(readonly id: string) {
    super();
  }
}

/** The tasks of a batch with the same parent session. */
export class BatchNode extends TreeNode {
  constructor(
    readonly batchID: string,
    readonly parentSessionID: string,
  ) {
    super();
  }
}

/** A session whose record can't be read. */
export class UnreadableNode extends TreeNode {
  constructor(readonly task: UnreadableTask) {
    super();
  }
}

export type Node = FolderNode | ChildNode | BatchNode | UnreadableNode;

/** The folder that a row belongs to. Undefined if the folder was removed, or if this isn't a row. */
export function folderOf(folders: Folders, node: unknown): Folder | undefined {
  if (node instanceof FolderNode) return folders.all.find(({ uri }) => uri.toString() === node.uri);
  if (node instanceof ChildNode) return folders.of(node.id);
  if (node instanceof BatchNode) return folders.of(node.parentSessionID);
  return node instanceof UnreadableNode ? folders.of(node.task.sessionID) : undefined;
}
