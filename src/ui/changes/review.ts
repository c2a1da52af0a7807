import * as vscode from "vscode";
import { messageOf, Refusal } from "../../engine/errors.ts";
import type { Logger } from "../../engine/ports.ts";
import { sentence } from "../../engine/sentence.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { isRunning, type Child } from "../../engine/subagent.ts";
import type { PresentText } from "../../rpc/revert-plan.ts";
import type { ContextKeys } from "../context-keys.ts";
import { connectedFolder, requireFolder, type Folders } from "../folders/folders.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { humanMessage } from "../messages.ts";
import { AcceptedChanges, type PlacedChange } from "./accepted-changes.ts";
import { presentFile, realPath, type Present } from "../output/workspace-file.ts";
import { changesTitle, ChangesView, type AllChangesNode, type ChangeNode } from "./changes-view.ts";
import { resourcePath, shownChange, sideOf, sideText, type ReviewedFile } from "./change-side.ts";
import { shownPath, worktreeDirectory } from "../worktrees/isolated-task.ts";
import type { PlanRevert } from "./revert-files.ts";

export interface ReviewParts {
  readonly known: Pick<Tasks, "child" | "session" | "find" | "onDidChange" | "onDidChangeSubagent">;
  readonly folders: Folders;
  readonly state: vscode.Memento;
  readonly keys: ContextKeys;
  /** Fires the address of each document of a change whose text has become outdated. */
  readonly textChanges: vscode.EventEmitter<vscode.Uri>;
  readonly logger: Logger;
}

/** The review of the changes of one task or subagent: the files that are neither accepted nor reverted yet. */
export class Review implements vscode.Disposable {
  private readonly accepted: AcceptedChanges;
  private readonly view: ChangesView;
  private readonly disposables: vscode.Disposable;
  private listed: { readonly child: Child; readonly changes: SessionChanges } | undefined;
  /** The paths left to review, by task; kept for the listed task and for tasks with open diff editors. */
  private readonly pendingPaths = new Map<string, ReadonlySet<string>>();
  /** Reads in progress of the changes of tasks that aren't listed. */
  private readonly reads = new Map<string, Promise<SessionChanges>>();
  /** The documents that show an error instead of their text. */
  private readonly unread = new Set<string>();

  constructor(private readonly parts: ReviewParts) {
    this.accepted = new AcceptedChanges(parts.state);
    this.view = new ChangesView(parts.keys, parts.known);
    this.disposables = vscode.Disposable.from(
      this.view,
      parts.known.onDidChange(({ id, before }) => this.follow(id, before)),
      parts.known.onDidChangeSubagent(({ id, before }) => this.follow(id, before)),
      vscode.workspace.onDidSaveTextDocument(async (document) => {
        const paths = this.view.nodes.map(({ change }) => realPath({ uri: vscode.Uri.file(change.path) }));
        // The editor may have opened it through a link.
        if ((await Promise.all(paths)).includes(await realPath(document))) await this.refresh();
      }),
      vscode.window.tabGroups.onDidChangeTabs(() => this.updateKeys()),
      vscode.window.tabGroups.onDidChangeTabGroups(() => this.updateKeys()),
      // Those of a folder that was removed are gone.
      parts.folders.onDidChange(() =>
        [...this.pendingPaths.keys()].forEach((id) => this.follow(id, undefined)),
      ),
      parts.folders.follow(({ connector }) =>
        connector.onDidChange(() => {
          if (connector.state.kind === "connected") this.readAgain();
        }),
      ),
    );
  }

  /** Reads from the server what a task or subagent changed. */
  async read({ id, createdAt }: Child): Promise<SessionChanges> {
    const { folders } = this.parts;
    const { calls } = await connectedFolder(folders, folders.of(id));
    // Changes before its creation belong to the conversation that a fork inherited.
    return calls.changes(id, createdAt);
  }

  /** Lists the changes that are left to review; if none are left, the list disappears. */
  async show(child: Child, changes: SessionChanges): Promise<void> {
    const listed = { child, changes };
    this.listed = listed;
    this.fireTexts(child.id);
    const pending = await this.note(child.id, changes);
    // In the meantime another task may have been listed, or the list closed.
    if (this.listed !== listed) return;
    this.view.show(
      child,
      changesTitle(child, changes.hasSnapshots),
      pending.map(({ change }) => change),
    );
  }

  /** Follows up on an accepted or reverted change; the list is updated if it shows this task. */
  async update(child: Child, changes: SessionChanges): Promise<void> {
    await (child.id === this.listedTaskID ? this.show(child, changes) : this.note(child.id, changes));
  }

  close(): void {
    this.listed = undefined;
    this.view.clear();
  }

  /** The changes of a task that nobody has accepted or reverted. */
  async pending(taskID: string, files: readonly FileChange[]): Promise<readonly PlacedChange[]> {
    const worktree = worktreeDirectory(this.parts.known, taskID);
    const plan = this.planner(taskID);
    const pending = await Promise.all(
      files.map(async (change) => {
        const placed = { change, present: await presentFile(change.path, worktree) };
        const isSettled =
          this.accepted.has(taskID, placed) || (await plan(change, placed.present)).kind === "nothing";
        return isSettled ? [] : [placed];
      }),
    );
    return pending.flat();
  }

  /** Plans reverts of what this task changed. */
  planner(taskID: string): PlanRevert {
    const { folders, known } = this.parts;
    return async (change, present) => {
      const name = shownPath(change.path, worktreeDirectory(known, taskID));
      const { calls } = folders.of(taskID) ?? requireFolder(folders);
      return calls.planRevert(taskID, change, { name, present: withText(present) });
    };
  }

  accept(taskID: string, changes: readonly PlacedChange[]): void {
    this.accepted.add(taskID, changes);
  }

  unaccept(taskID: string, paths: readonly string[]): void {
    this.accepted.drop(taskID, paths);
  }

  /** The text of a document of a change; if it can't be read, the reason. */
  async text(uri: vscode.Uri): Promise<string> {
    const side = sideOf(uri);
    if (!side) return "";
    try {
      const { files } = await this.changesOf(side.taskID);
      this.unread.delete(uri.toString());
      const change = files.find(({ path }) => path === side.path);
      return change
        ? sideText(change, side.side)
        : vscode.l10n.t("The task no longer has a change to this file.");
    } catch (error) {
      this.unread.add(uri.toString());
      return humanMessage(error);
    }
  }

  /**
   * The changes that a button in a diff editor's title can refer to, given the modified side. The real file can be that
   * side in diffs of several tasks, and with `alwaysShowEditorActions` the buttons also appear in inactive editor
   * groups.
   */
  shownChanges(modified: vscode.Uri): readonly ReviewedFile[] {
    const side = sideOf(modified);
    if (side) return [side];
    const { all, activeTabGroup } = vscode.window.tabGroups;
    const showsAll =
      vscode.workspace.getConfiguration("workbench.editor").get("alwaysShowEditorActions") === true;
    const shown = (showsAll ? all : [activeTabGroup]).flatMap(({ activeTab }) =>
      activeTab && modifiedPath(activeTab) === resourcePath(modified) ? (shownChange(activeTab) ?? []) : [],
    );
    return [...new Map(shown.map((change) => [change.taskID, change])).values()];
  }

  /**
   * What a keybinding refers to: the row selected in the list if the list has the focus, as a diff editor can be active
   * beside it; otherwise the file of the active diff editor.
   */
  current(isInList: boolean): ReviewedFile | ChangeNode | AllChangesNode | undefined {
    const { activeTab } = vscode.window.tabGroups.activeTabGroup;
    const shown = isInList || !activeTab ? undefined : shownChange(activeTab);
    return shown ?? this.view.selected;
  }

  /** The task whose changes are listed. */
  get listedTaskID(): string | undefined {
    return this.listed?.child.id;
  }

  /** The changes as they are listed. */
  get rows(): readonly ChangeNode[] {
    return this.view.nodes;
  }

  dispose(): void {
    this.disposables.dispose();
  }

  private follow(id: string, before: Child | undefined): void {
    // A subagent that disappears may have become a task.
    const child = this.parts.known.child(id);
    if (!child && this.pendingPaths.delete(id)) this.updateKeys();
    if (id !== this.listedTaskID) return;
    if (!child) this.close();
    else if (before && isRunning(before) && !isRunning(child)) void this.refresh();
  }

  /** Remembers which changes of a task are left to review. */
  private async note(taskID: string, { files }: SessionChanges): Promise<readonly PlacedChange[]> {
    const pending = await this.pending(taskID, files);
    this.pendingPaths.set(taskID, new Set(pending.map(({ change }) => change.path)));
    this.updateKeys();
    return pending;
  }

  /** Only diff editors of changes that are left to review offer the accept and revert buttons. */
  private updateKeys(): void {
    const { all } = vscode.window.tabGroups;
    const open = new Set(all.flatMap(({ tabs }) => tabs.flatMap((tab) => shownChange(tab)?.taskID ?? [])));
    for (const id of this.pendingPaths.keys())
      if (id !== this.listedTaskID && !open.has(id)) this.pendingPaths.delete(id);
    const paths = all.flatMap(({ activeTab }) => {
      const change = activeTab && shownChange(activeTab);
      const isLeft = change && this.pendingPaths.get(change.taskID)?.has(change.path);
      return (isLeft && modifiedPath(activeTab)) || [];
    });
    this.parts.keys.set("reviewedFiles", paths);
  }

  /** The listed changes of a task; otherwise reads them from the server, without starting one. */
  private async changesOf(taskID: string): Promise<SessionChanges> {
    if (this.listed?.child.id === taskID) return this.listed.changes;
    // The editor requests all documents of a diff at the same time.
    const reading =
      this.reads.get(taskID) ?? this.readUnlisted(taskID).finally(() => this.reads.delete(taskID));
    this.reads.set(taskID, reading);
    return reading;
  }

  private async readUnlisted(taskID: string): Promise<SessionChanges> {
    const { folders, known } = this.parts;
    await folders.opened;
    await folders.adopt();
    const isConnected = folders.all.every(({ connector }) => connector.state.kind === "connected");
    if (!known.child(taskID) && !isConnected)
      throw new Refusal("unavailable", sentence("Not connected to OpenCode. Connect to see this change."));
    const changes = await this.read(known.child(taskID) ?? known.find(taskID));
    await this.note(taskID, changes);
    return changes;
  }

  /** Makes the editor read the texts of a task's changes again. */
  private fireTexts(taskID: string): void {
    for (const { uri } of vscode.workspace.textDocuments)
      if (sideOf(uri)?.taskID === taskID) this.parts.textChanges.fire(uri);
  }

  private readAgain(): void {
    const uris = [...this.unread];
    this.unread.clear();
    for (const uri of uris) this.parts.textChanges.fire(vscode.Uri.parse(uri));
  }

  private async refresh(): Promise<void> {
    if (!this.listed) return;
    const { child } = this.listed;
    try {
      await this.update(child, await this.read(child));
    } catch (error) {
      this.parts.logger.warn(`Couldn't refresh the changes: ${messageOf(error)}`);
    }
  }
}

/** As the daemon plans with it. */
export function withText(present: Present): PresentText {
  if (present.kind !== "file") return present;
  const { kind, bytes, isUnsaved } = present;
  const file = { kind, isUnsaved };
  try {
    return { ...file, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return file;
  }
}

function modifiedPath({ input }: vscode.Tab): string | undefined {
  return input instanceof vscode.TabInputTextDiff ? resourcePath(input.modified) : undefined;
}
