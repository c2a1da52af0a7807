import * as vscode from "vscode";
import type { ShownOutputs } from "../../src/ui/tree/unread.ts";

/** What the editor stores for a workspace. */
export class MemoryMemento implements vscode.Memento {
  private readonly values = new Map<string, unknown>();
  keys = (): readonly string[] => [...this.values.keys()];
  get = <T>(key: string, fallback?: T): T => (this.values.get(key) ?? fallback) as T;
  update = async (key: string, value: unknown): Promise<void> => void this.values.set(key, value);
}

/** No output is open. */
export const NOTHING_SHOWN: ShownOutputs = {
  isShown: () => false,
  onDidShow: new vscode.EventEmitter<string>().event,
};
