import type * as vscode from "vscode";
import type { Tombstone } from "../../engine/find-task.ts";
import type { KeptTasks } from "../../rpc/contract.ts";
import type { Seen } from "../while-away.ts";

const PICKED_SESSION = "asyncagents.pickedSession";
const SEEN = "asyncagents.seen";
const TOMBSTONES = "asyncagents.tombstones";
const UNSETTLED = "asyncagents.unsettled";

/** What the editor keeps of one folder with the workspace. */
export class FolderState {
  private readonly folder: string;

  /** @param isFirst whether it takes over what was kept when a window knew its first folder alone */
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

  /** What a window saw of the folder last; undefined: none did yet. */
  get seen(): Seen | undefined {
    return this.state.get(this.key(SEEN));
  }

  set seen(seen: Seen | undefined) {
    void this.state.update(this.key(SEEN), seen);
  }

  /** What an earlier version kept of the folder's tasks; the daemon does now. */
  get keptTasks(): KeptTasks | undefined {
    const tombstones = this.state.get<KeptTasks["tombstones"]>(this.key(TOMBSTONES));
    const unsettled = this.state.get<KeptTasks["unsettled"]>(this.key(UNSETTLED));
    return tombstones || unsettled ? { tombstones: tombstones ?? [], unsettled: unsettled ?? [] } : undefined;
  }

  /** Forgets it, unless the daemon, which knows these, does not have all of it. */
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
