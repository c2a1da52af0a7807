import type * as vscode from "vscode";
import { createFolderCalls, type FolderParts } from "../../src/daemon/folder-calls.ts";
import type { ActiveSession } from "../../src/engine/active-session.ts";
import type { ConnectionState } from "../../src/engine/connection.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { Emitter } from "../../src/engine/event.ts";
import type { Logger } from "../../src/engine/ports.ts";
import { type Folder, Folders } from "../../src/ui/folders/folders.ts";
import type { WindowSession } from "../../src/ui/folders/window-session.ts";

const CONNECTED: ConnectionState = { kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true };

/** The parts of a folder in a test; parts that aren't listed here are missing. */
export interface FolderSetup {
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  /** The state of the connection; by default connected. */
  readonly state?: ConnectionState;
  readonly ensureConnected?: () => Promise<void>;
}

/** A workspace whose folders a test adds and removes by name. */
export class MemoryWorkspace {
  private readonly setups = new Map<string, FolderSetup>();
  private readonly changes: Emitter<vscode.WorkspaceFoldersChangeEvent>;
  readonly folders: Folders;
  /** What happened to which folder: adopt, connect, dispose. */
  readonly journal: string[] = [];
  workspaceFolders: readonly vscode.WorkspaceFolder[] = [];

  constructor(logger: Logger) {
    this.changes = new Emitter((error) => logger.error("A listener failed.", error));
    const present = (): readonly vscode.WorkspaceFolder[] => this.workspaceFolders;
    this.folders = new Folders(
      {
        get workspaceFolders() {
          return present();
        },
        onDidChangeWorkspaceFolders: this.changes.event as vscode.Event<vscode.WorkspaceFoldersChangeEvent>,
        getWorkspaceFolder: (uri) =>
          this.workspaceFolders.find((folder) => uri.toString().startsWith(folder.uri.toString())),
      },
      logger,
    );
  }

  /** Opens the folders added so far. */
  open(): Promise<void> {
    return this.folders.open((folder) => this.openFolder(folder));
  }

  add(name: string, setup: FolderSetup, scheme = "file"): void {
    this.setups.set(name, setup);
    const uri = { scheme, toString: () => `${scheme}:///${name}`, fsPath: `/${name}` } as vscode.Uri;
    const folder = { uri, name, index: this.workspaceFolders.length };
    this.workspaceFolders = [...this.workspaceFolders, folder];
    this.changes.fire({ added: [folder], removed: [] });
  }

  remove(name: string): void {
    const removed = this.workspaceFolders.filter((folder) => folder.name === name);
    this.workspaceFolders = this.workspaceFolders.filter((folder) => folder.name !== name);
    this.changes.fire({ added: [], removed });
  }

  /** The folder with this name. */
  get(name: string): Folder {
    const folder = this.folders.all.find((each) => each.name === name);
    if (!folder) throw new Error(`There is no folder ${name}.`);
    return folder;
  }

  private openFolder({ uri, name }: vscode.WorkspaceFolder): Folder {
    const setup = this.setups.get(name);
    if (!setup) throw new Error(`The folder ${name} was not set up.`);
    const { engine, session, state = CONNECTED, ensureConnected } = setup;
    const did = (what: string) => async () => void this.journal.push(`${what} ${name}`);
    const connector = {
      state,
      onDidChange: () => ({ dispose: () => undefined }),
      adopt: did("adopt"),
      ensureConnected: ensureConnected ?? did("connect"),
    };
    return {
      uri,
      name,
      known: engine,
      calls: createFolderCalls({ engine, session } as FolderParts),
      session: shownSession(engine, session),
      connector,
      dispose: () => this.journal.push(`dispose ${name}`),
    } as unknown as Folder;
  }
}

/** The session of a window whose user picked none. */
function shownSession(engine: TaskEngine, session: ActiveSession): Partial<WindowSession> {
  return {
    get id() {
      return session.id;
    },
    get session() {
      return session.id === undefined ? undefined : engine.session(session.id);
    },
    onDidChange: session.onDidChange,
    ensure: () => session.ensure(),
  };
}
