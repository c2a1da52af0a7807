import type * as vscode from "vscode";

/** How long the editor asks for no rows until its first load counts as done, in milliseconds. */
const QUIET_MS = 1_000;

/**
 * Repeats a change that arrives while the editor loads the tree for the first time. The editor then reads the rows that
 * it has just stored as if they were new, and mixes up what belongs to which row: a group is shown as expanded and empty
 * until its next change.
 */
export class FirstLoad implements vscode.Disposable {
  private isDone = false;
  private isChanged = false;
  private quiet: NodeJS.Timeout | undefined;

  constructor(private readonly repeat: () => void) {}

  /** The editor asks for rows. */
  asked(): void {
    if (this.isDone) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.isDone = true;
      if (this.isChanged) this.repeat();
    }, QUIET_MS);
  }

  /** The editor is told of a change. */
  changed(): void {
    this.isChanged ||= this.quiet !== undefined;
  }

  dispose(): void {
    clearTimeout(this.quiet);
  }
}
