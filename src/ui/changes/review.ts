import * as vscode from "vscode";
import { messageOf } from "../../engine/errors.ts";
import type { Disposable, Event } from "../../engine/event.ts";
import type { Logger } from "../../engine/ports.ts";
import type { TaskChange } from "../../engine/registry.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { isAtWork, type Child } from "../../engine/subagent.ts";
import type { ContextKeys } from "../context-keys.ts";
import { AcceptedChanges, type PlacedChange } from "./accepted-changes.ts";
import { ChangesView, type ChangeNode } from "./changes-view.ts";
import type { AddText } from "./diff-sides.ts";
import { presentFile } from "./present-file.ts";
import { isReverted } from "./revert-plan.ts";
import { changesTitle, showChange } from "./show-changes.ts";

export interface ReviewParts {
  readonly engine: { child(id: string): Child | undefined; readonly onDidChange: Event<TaskChange> };
  /** What a task or subagent changed, as the server knows it now. */
  readonly read: (child: Child) => Promise<SessionChanges>;
  readonly state: vscode.Memento;
  readonly keys: ContextKeys;
  readonly addText: AddText;
  readonly logger: Logger;
}

/** A file among what a task or subagent changed. */
export interface ReviewedFile {
  readonly taskID: string;
  readonly path: string;
}

/** The review of what one task or subagent changed: the files that are neither accepted nor reverted yet. */
export class Review implements vscode.Disposable {
  private readonly accepted: AcceptedChanges;
  private readonly view: ChangesView;
  private readonly subscriptions: readonly Disposable[];
  /** Whose changes are listed. */
  private taskID: string | undefined;
  private hasSnapshots = true;
  /** The files of the diff editors that were opened, by the path of what these show as modified. */
  private readonly opened = new Map<string, ReviewedFile>();

  constructor(private readonly parts: ReviewParts) {
    this.accepted = new AcceptedChanges(parts.state);
    this.view = new ChangesView(parts.keys);
    this.subscriptions = [
      this.view,
      parts.engine.onDidChange(({ id, before, after }) => {
        if (id === this.taskID && before && isAtWork(before) && after && !isAtWork(after))
          void this.refresh();
      }),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (this.view.nodes.some(({ change }) => vscode.Uri.file(change.path).fsPath === uri.fsPath))
          void this.refresh();
      }),
    ];
  }

  /** Lists what is left to review of these changes; nothing: the list is closed. */
  async show(child: Child, { files, hasSnapshots }: SessionChanges): Promise<void> {
    this.taskID = child.id;
    this.hasSnapshots = hasSnapshots;
    const pending = await this.pending(child.id, files);
    if (this.taskID === child.id)
      this.view.show(
        child,
        pending.map(({ change }) => change),
      );
  }

  /** Lists what is left of a task's changes, if those are what is listed. */
  async update(child: Child, changes: SessionChanges): Promise<void> {
    if (child.id === this.taskID) await this.show(child, changes);
  }

  close(): void {
    this.taskID = undefined;
    this.view.show(undefined, []);
  }

  /** Those of a task's changes that were neither accepted nor reverted, by whomever. */
  async pending(taskID: string, files: readonly FileChange[]): Promise<readonly PlacedChange[]> {
    const placed = await Promise.all(
      files.map(async (change) => ({ change, present: await presentFile(change.path) })),
    );
    return placed.filter((one) => !isReverted(one.change, one.present) && !this.accepted.has(taskID, one));
  }

  accept(taskID: string, changes: readonly PlacedChange[]): void {
    this.accepted.add(taskID, changes);
  }

  unaccept(taskID: string, paths: readonly string[]): void {
    this.accepted.drop(taskID, paths);
  }

  /** Opens one file of the list in the diff editor. */
  async open({ taskID, change }: ChangeNode): Promise<void> {
    const child = this.parts.engine.child(taskID);
    if (!child) return;
    const modified = await showChange(changesTitle(child, this.hasSnapshots), change, this.parts.addText);
    this.isOpen(modified, { taskID, path: change.path });
  }

  /** A diff editor was opened for a file. */
  isOpen(modified: vscode.Uri, file: ReviewedFile): void {
    this.opened.set(modified.fsPath, file);
    this.parts.keys.set("asyncagents.reviewedFiles", [...this.opened.keys()]);
  }

  /** The file that a button in the title of an editor is about. */
  openedFile(modified: vscode.Uri): ReviewedFile | undefined {
    return this.opened.get(modified.fsPath);
  }

  /** The file that a key is about: that of the active diff editor, else the one selected in the list. */
  get current(): ReviewedFile | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const open = input instanceof vscode.TabInputTextDiff ? this.openedFile(input.modified) : undefined;
    const selected = this.view.selected;
    return open ?? (selected && { taskID: selected.taskID, path: selected.change.path });
  }

  /** The task whose changes are listed. */
  get listedTaskID(): string | undefined {
    return this.taskID;
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private async refresh(): Promise<void> {
    const child = this.taskID === undefined ? undefined : this.parts.engine.child(this.taskID);
    try {
      if (child) await this.update(child, await this.parts.read(child));
    } catch (error) {
      this.parts.logger.warn(`The changes were not read anew: ${messageOf(error)}`);
    }
  }
}
