import type * as vscode from "vscode";
import type { Seen } from "../while-away.ts";

const PICKED_SESSION = "asyncagents.pickedSession";
const SEEN = "asyncagents.seen";

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
    if (isFirst) this.takeOver(PICKED_SESSION);
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
