import * as vscode from "vscode";
import { messageOf } from "../../engine/errors.ts";
import type { Disposable } from "../../engine/event.ts";
import type { Logger } from "../../engine/ports.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { isAtWork, type Child } from "../../engine/subagent.ts";
import type { ContextKeys } from "../context-keys.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { Tasks } from "../folders/engines.ts";
import type { Folders } from "../folders/folders.ts";
import { AcceptedChanges, type PlacedChange } from "./accepted-changes.ts";
import { ChangesView, type ChangeNode } from "./changes-view.ts";
import type { AddText } from "./diff-sides.ts";
import { presentFile } from "./present-file.ts";
import { isReverted } from "./revert-plan.ts";
import { changesTitle, showChange } from "./show-changes.ts";

export interface ReviewParts {
  readonly engine: Pick<Tasks, "child" | "onDidChange" | "onDidChangeSubagent">;
  readonly folders: Folders;
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
  private listed: { readonly child: Child; readonly changes: SessionChanges } | undefined;
  /** The files of the diff editors that were opened, by the path of what these show as modified. */
  private readonly opened = new Map<string, ReviewedFile>();

  constructor(private readonly parts: ReviewParts) {
    this.accepted = new AcceptedChanges(parts.state);
    this.view = new ChangesView(parts.keys);
    this.subscriptions = [
      this.view,
      parts.engine.onDidChange(({ id, before }) => this.follow(id, before)),
      parts.engine.onDidChangeSubagent(({ id, before }) => this.follow(id, before)),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (this.view.nodes.some(({ change }) => vscode.Uri.file(change.path).fsPath === uri.fsPath))
          void this.refresh();
      }),
    ];
  }

  /** What a task or subagent changed, as the server knows it now. */
  async read({ id, createdAt }: Child): Promise<SessionChanges> {
    const { folders } = this.parts;
    const { connection } = await connectedFolder(folders, folders.of(id));
    // What a fork inherited was done before it was there.
    return connection.server.changes(id, createdAt);
  }

  /** Lists what is left to review of these changes; nothing: the list is closed. */
  async show(child: Child, changes: SessionChanges): Promise<void> {
    const listed = { child, changes };
    this.listed = listed;
    const pending = await this.pending(child.id, changes.files);
    // Meanwhile others may have been shown, or the list closed.
    if (this.listed !== listed) return;
    this.view.show(
      child,
      pending.map(({ change }) => change),
    );
    this.updateKeys();
  }

  /** Lists what is left of a task's changes, if those are what is listed. */
  async update(child: Child, changes: SessionChanges): Promise<void> {
    if (child.id === this.listedTaskID) await this.show(child, changes);
  }

  close(): void {
    this.listed = undefined;
    this.view.show(undefined, []);
    this.updateKeys();
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
    if (!this.listed) return;
    const { child, changes } = this.listed;
    const title = changesTitle(child, changes.hasSnapshots);
    this.setOpen(await showChange(title, change, this.parts.addText), { taskID, path: change.path });
  }

  /** A diff editor was opened for a file. */
  setOpen(modified: vscode.Uri, file: ReviewedFile): void {
    this.opened.set(modified.fsPath, file);
    this.updateKeys();
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
    return this.listed?.child.id;
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private follow(id: string, before: Child | undefined): void {
    if (id !== this.listedTaskID) return;
    // What is gone as a subagent can be a task now.
    const child = this.parts.engine.child(id);
    if (!child) this.close();
    else if (before && isAtWork(before) && !isAtWork(child)) void this.refresh();
  }

  /** Only the diff editors of files that are still listed offer to accept and to revert. */
  private updateKeys(): void {
    const listed = new Set(this.view.nodes.map(({ taskID, change }) => `${taskID} ${change.path}`));
    const paths = [...this.opened].flatMap(([modified, { taskID, path }]) =>
      listed.has(`${taskID} ${path}`) ? [modified] : [],
    );
    this.parts.keys.set("asyncagents.reviewedFiles", paths);
  }

  private async refresh(): Promise<void> {
    if (!this.listed) return;
    const { child } = this.listed;
    try {
      await this.update(child, await this.read(child));
    } catch (error) {
      this.parts.logger.warn(`The changes were not read anew: ${messageOf(error)}`);
    }
  }
}
