import type * as vscode from "vscode";
import type { Tombstone } from "../../engine/find-task.ts";
import type { KeptTasks } from "../../rpc/contract.ts";
import type { Seen } from "../while-away.ts";
import { DisposableStore } from "../../engine/disposable-store.ts";
import { Emitter, type Disposable, type Event, logged } from "../../engine/event.ts";
import type { MirroredSession } from "../../engine/folder-changes.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import { firstRoot, rootsOf } from "../../engine/root-sessions.ts";

const ALLOWED_SETUP = "asyncagents.allowedSetup";
const PICKED_SESSION = "asyncagents.pickedSession";
const SEEN = "asyncagents.seen";
const TOMBSTONES = "asyncagents.tombstones";
const UNSETTLED = "asyncagents.unsettled";

/** The state of a folder that VS Code stores with the workspace. */
export class FolderState {
  private readonly folder: string;

  /** @param isFirst whether to take over the state of earlier versions, in which a window used only its first folder */
  constructor(
    private readonly state: vscode.Memento,
    uri: vscode.Uri,
    isFirst: boolean,
  ) {
    this.folder = uri.toString();
    if (isFirst) for (const name of [PICKED_SESSION, TOMBSTONES]) this.takeOver(name);
  }

  get pickedSession(): string | undefined {
    return this.state.get(this.key(PICKED_SESSION));
  }

  set pickedSession(id: string | undefined) {
    void this.state.update(this.key(PICKED_SESSION), id);
  }

  /** What a window last saw of the folder; undefined if no window has seen it yet. */
  get seen(): Seen | undefined {
    return this.state.get(this.key(SEEN));
  }

  set seen(seen: Seen | undefined) {
    void this.state.update(this.key(SEEN), seen);
  }

  /** The setup command of worktrees that the user allowed last. */
  get allowedSetup(): string | undefined {
    return this.state.get(this.key(ALLOWED_SETUP));
  }

  set allowedSetup(command: string | undefined) {
    void this.state.update(this.key(ALLOWED_SETUP), command);
  }

  /** The tasks that an earlier version stored for the folder; now the daemon stores them. */
  get keptTasks(): KeptTasks | undefined {
    const tombstones = this.state.get<KeptTasks["tombstones"]>(this.key(TOMBSTONES));
    const unsettled = this.state.get<KeptTasks["unsettled"]>(this.key(UNSETTLED));
    return tombstones || unsettled ? { tombstones: tombstones ?? [], unsettled: unsettled ?? [] } : undefined;
  }

  /** Removes the stored tasks, unless the daemon is missing some of them. `known` are those that the daemon has. */
  leaveTasks(known: readonly Tombstone[]): void {
    const ids = new Set(known.map(({ id }) => id));
    if (!this.keptTasks?.tombstones.every(({ id }) => ids.has(id))) return;
    for (const name of [TOMBSTONES, UNSETTLED]) void this.state.update(this.key(name), undefined);
  }

  private key(name: string): string {
    return `${name} ${this.folder}`;
  }

  private takeOver(name: string): void {
    const kept = this.state.get(name);
    if (kept === undefined) return;
    void this.state.update(this.key(name), kept);
    void this.state.update(name, undefined);
  }
}

/**
 * The session whose tasks this window shows and to which it adds new ones: the one that the user picked in this window,
 * otherwise the folder's session that was last written to.
 */
export class WindowSession implements Disposable {
  private last: string | undefined;
  private readonly changes: Emitter<string | undefined>;
  private readonly disposables: DisposableStore;
  readonly onDidChange: Event<string | undefined>;

  constructor(
    private readonly known: ReadModel,
    /** Resolves to the session that a user last wrote to; creates one if the folder has none. */
    private readonly ensureSession: () => Promise<string>,
    logger: Logger,
    /** Stores which session the user picked, also for later runs. */
    private readonly choice: Pick<FolderState, "pickedSession">,
  ) {
    this.changes = new Emitter(logged(logger, "the active session"));
    this.onDidChange = this.changes.event;
    this.disposables = new DisposableStore(
      known.onDidChangeLatest(() => this.announce()),
      known.onDidChangeSession((id) => {
        if (
          id === choice.pickedSession ||
          id === known.latestSessionID ||
          id === this.last ||
          this.last === undefined
        )
          this.announce();
      }),
    );
  }

  /** Undefined if the folder has no session yet. */
  get session(): MirroredSession | undefined {
    return this.last === undefined ? undefined : this.known.session(this.last);
  }

  get id(): string | undefined {
    return this.last;
  }

  /** The sessions that can be active, most recently used first. */
  roots(): readonly MirroredSession[] {
    return rootsOf(this.known.sessions());
  }

  /** Picks a session; undefined follows the latest conversation again. */
  select(sessionID: string | undefined): void {
    this.choice.pickedSession = sessionID;
    this.announce();
  }

  /** The active session, created if the folder has none. */
  async ensure(): Promise<string> {
    return this.id ?? this.ensureSession();
  }

  dispose(): void {
    this.disposables.dispose();
    this.changes.dispose();
  }

  private announce(): void {
    const id = firstRoot(
      [this.choice.pickedSession, this.known.latestSessionID, this.last],
      (each) => this.known.session(each),
      () => this.known.sessions(),
    );
    if (id === this.last) return;
    this.last = id;
    this.changes.fire(id);
  }
}
