import type * as vscode from "vscode";
import type { Tombstone, TombstoneStore } from "../../engine/registry.ts";
import type { TaskRecord } from "../../engine/task.ts";

const PICKED_SESSION = "asyncagents.pickedSession";
const TOMBSTONES = "asyncagents.tombstones";
const UNSETTLED = "asyncagents.unsettled";

/** What the editor keeps of one folder with the workspace. */
export class FolderState implements TombstoneStore {
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

  load(): readonly Tombstone[] {
    return this.state.get(this.key(TOMBSTONES), []);
  }

  save(tombstones: readonly Tombstone[]): void {
    void this.state.update(this.key(TOMBSTONES), tombstones);
  }

  loadUnsettled(): readonly TaskRecord[] {
    return this.state.get(this.key(UNSETTLED), []);
  }

  saveUnsettled(records: readonly TaskRecord[]): void {
    void this.state.update(this.key(UNSETTLED), records);
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
