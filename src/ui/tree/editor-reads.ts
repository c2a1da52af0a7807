import type * as vscode from "vscode";

/** How long the editor asks for no rows until its first load counts as done, in milliseconds. */
const QUIET_MS = 1_000;

/**
 * Follows the editor's reads of the tree. Repeats a change that arrives while the editor loads the tree for the first
 * time: it then reads the rows that it has just stored as if they were new, and mixes up what belongs to which row, so that
 * a group is shown as expanded and empty until its next change.
 */
export class EditorReads implements vscode.Disposable {
  private isDone = false;
  private isChanged = false;
  private quiet: NodeJS.Timeout | undefined;
  /** When the editor asked for rows last, in milliseconds since 1970; it draws them a moment later. */
  askedAt = 0;
  /** When it was last told of a change. */
  changedAt = 0;

  constructor(private readonly repeat: () => void) {}

  /** The editor asks for rows. */
  asked(): void {
    this.askedAt = Date.now();
    if (this.isDone) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.isDone = true;
      if (this.isChanged) this.repeat();
    }, QUIET_MS);
  }

  /** The editor is told of a change. */
  changed(): void {
    this.changedAt = Date.now();
    this.isChanged ||= this.quiet !== undefined;
  }

  dispose(): void {
    clearTimeout(this.quiet);
  }
}
