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
