import type * as vscode from "vscode";
import { Emitter, type Disposable, type Event, logged } from "../../engine/event.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import type { ConversationOpener, FolderCalls } from "../../rpc/contract.ts";
import type { Connector } from "../connector.ts";
import type { WindowSession } from "./window-session.ts";
import type { Settings } from "../settings.ts";
import type { WhileAway } from "../while-away.ts";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";

/** A workspace folder in this window. Each folder has its own connection, session and tasks. */
export interface Folder extends Disposable {
  readonly uri: vscode.Uri;
  /** The name shown in VS Code. */
  readonly name: string;
  /** The settings that apply to this folder. */
  readonly settings: Settings;
  /** The connection as the user sees it. */
  readonly connector: Connector;
  /** The known tasks of the folder. */
  readonly known: ReadModel;
  /** Calls that change tasks or read on demand. Throws a `Refusal` until the folder is trusted and open. */
  readonly calls: FolderCalls;
  /** Opens the folder at the daemon; repeated calls do nothing. Starts no server. */
  open(): Promise<FolderCalls>;
  /** Throws a `Refusal` until the folder is open. */
  readonly openConversation: ConversationOpener;
  /** Allows the setup command of worktrees to run in this folder. */
  allowSetup(command: string): Promise<void>;
  readonly session: WindowSession;
  readonly whileAway: WhileAway;
}

/** The part of `vscode.workspace` that lists folders. */
export type Workspace = Pick<
  typeof vscode.workspace,
  "workspaceFolders" | "onDidChangeWorkspaceFolders" | "getWorkspaceFolder"
>;

export type FolderOpener = (folder: vscode.WorkspaceFolder) => Folder;

type Follower = (folder: Folder) => Disposable;

/** Whether agents can work in the folder. Also true for folders of a remote window, where the extension runs. */
export function isOnDisk({ uri }: vscode.WorkspaceFolder): boolean {
  return uri.scheme === "file";
}

/** The workspace folders that are on disk. Empty until {@link open} is called. */
export class Folders implements Disposable {
  /** By address. */
  private readonly folders = new Map<string, Folder>();
  private used: Folder | undefined;
  /** The current folder when the last change was announced. */
  private lastCurrent: Folder | undefined;
  /** For each follower, its result for each folder. */
  private readonly followers = new Map<Follower, Map<Folder, Disposable>>();
  private readonly changes: Emitter<void>;
  private readonly currentChanges: Emitter<void>;
  private readonly closes: Emitter<Folder>;
  private subscription: Disposable | undefined;
  private announceOpened!: () => void;
  /** Resolves when the window's initial folders have been added. */
  readonly opened = new Promise<void>((resolve) => (this.announceOpened = resolve));
  /** Fires when folders are added or removed. */
  readonly onDidChange: Event<void>;
  /** Fires when a folder was removed from the workspace; the folder is disposed after all listeners have run. */
  readonly onWillClose: Event<Folder>;
  /** Fires when another folder becomes the current one. */
  readonly onDidChangeCurrent: Event<void>;

  constructor(
    private readonly workspace: Workspace,
    logger: Logger,
  ) {
    const onListenerError = logged(logger, "the folders");
    this.changes = new Emitter(onListenerError);
    this.currentChanges = new Emitter(onListenerError);
    this.closes = new Emitter(onListenerError);
    this.onWillClose = this.closes.event;
    this.onDidChange = this.changes.event;
    this.onDidChangeCurrent = this.currentChanges.event;
  }

  /** In the order of the workspace. */
  get all(): readonly Folder[] {
    const { workspaceFolders = [] } = this.workspace;
    return workspaceFolders.flatMap(({ uri }) => this.folders.get(uri.toString()) ?? []);
  }

  /** The folder used last, otherwise the first one. Undefined if there is none. */
  get current(): Folder | undefined {
    return this.used ?? this.all[0];
  }

  /** The innermost folder that contains the file. */
  at(uri: vscode.Uri): Folder | undefined {
    const folder = this.workspace.getWorkspaceFolder(uri);
    return folder && this.folders.get(folder.uri.toString());
  }

  /** The folder of a session, whether it is a task or not. */
  of(sessionID: string): Folder | undefined {
    return this.all.find(({ known }) => known.session(sessionID) !== undefined);
  }

  /** The IDs of the active sessions. */
  get sessionIDs(): readonly string[] {
    return this.all.flatMap(({ session }) => session.id ?? []);
  }

  /** Makes a folder the current one, unless it was removed in the meantime. */
  use(folder: Folder | undefined): void {
    if (!folder || !this.all.includes(folder)) return;
    this.used = folder;
    this.fireCurrent();
  }

  /**
   * Adds the folders of the workspace, and from now on every new one. Resolves when the initial folders are connected
   * to servers that were already running.
   */
  async open(openFolder: FolderOpener): Promise<void> {
    for (const folder of this.workspace.workspaceFolders?.filter(isOnDisk) ?? [])
      this.add(openFolder(folder));
    this.subscription = this.workspace.onDidChangeWorkspaceFolders(({ added, removed }) => {
      for (const { uri } of removed) this.close(uri.toString());
      for (const folder of added.filter(isOnDisk)) void this.add(openFolder(folder)).connector.adopt();
      this.changes.fire();
      this.fireCurrent();
    });
    this.announceOpened();
    this.changes.fire();
    this.fireCurrent();
    await this.adopt();
  }

  /** Connects to servers that are already running; starts none. */
  async adopt(): Promise<void> {
    await Promise.all(this.all.map(({ connector }) => connector.adopt()));
  }

  /** Calls the follower for each present and future folder; disposes its result when the folder is removed. */
  follow(follower: Follower): Disposable {
    const followed = new Map<Folder, Disposable>();
    this.followers.set(follower, followed);
    for (const folder of this.all) followed.set(folder, follower(folder));
    return {
      dispose: () => {
        this.followers.delete(follower);
        for (const each of followed.values()) each.dispose();
      },
    };
  }

  dispose(): void {
    this.subscription?.dispose();
    for (const uri of [...this.folders.keys()]) this.remove(uri);
    for (const emitter of [this.changes, this.currentChanges, this.closes]) emitter.dispose();
  }

  private fireCurrent(): void {
    if (this.current === this.lastCurrent) return;
    this.lastCurrent = this.current;
    this.currentChanges.fire();
  }

  private add(folder: Folder): Folder {
    this.folders.set(folder.uri.toString(), folder);
    for (const [follower, followed] of this.followers) followed.set(folder, follower(folder));
    return folder;
  }

  private close(uri: string): void {
    const folder = this.folders.get(uri);
    if (folder) this.closes.fire(folder);
    this.remove(uri);
  }

  private remove(uri: string): void {
    const folder = this.folders.get(uri);
    if (!folder) return;
    this.folders.delete(uri);
    if (this.used === folder) this.used = undefined;
    for (const followed of this.followers.values()) {
      followed.get(folder)?.dispose();
      followed.delete(folder);
    }
    folder.dispose();
  }
}

/** The current folder. Throws a {@link Refusal} if there is none. */
export function requireFolder({ current }: Pick<Folders, "current">): Folder {
  if (current) return current;
  throw new Refusal("unavailable", sentence("Open a folder first; background agents work in a folder."));
}

/** The error for a prompt whose folder was removed from the workspace. */
export function folderGone(): Refusal {
  return new Refusal(
    "unavailable",
    sentence(
      "The folder of this prompt is no longer in the workspace. Add the folder again, or copy the prompt.",
    ),
  );
}

/**
 * Connects a folder, by default the current one, while the view shows progress. Rejects if there is no folder, if it
 * was removed from the workspace, or if connecting fails.
 */
export async function connectedFolder(folders: Folders, wanted?: Folder): Promise<Folder> {
  await folders.opened;
  const folder = wanted ?? requireFolder(folders);
  if (!folders.all.includes(folder)) throw folderGone();
  await folder.connector.ensureConnected();
  return folder;
}

/** Adds the folder's name to a title if there are several folders. */
export function folderTitle(folders: Folders, { name }: Folder, title: string): string {
  return folders.all.length > 1 ? `${title} — ${name}` : title;
}
