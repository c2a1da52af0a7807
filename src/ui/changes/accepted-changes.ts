import { createHash } from "node:crypto";
import type * as vscode from "vscode";
import type { FileChange } from "../../engine/server-model.ts";
import type { Present } from "../output/workspace-file.ts";

const ACCEPTED = "asyncagents.acceptedChanges";
/** The number of tasks whose accepted changes are remembered. */
const TASK_COUNT = 200;

/** By task, then by path: a hash of the content that the task left in the file. */
type Accepted = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A change, and the current state of its file. */
export interface PlacedChange {
  readonly change: FileChange;
  readonly present: Present;
}

/** The changes that the user has accepted. A later change to the same file has another hash, so it isn't accepted. */
export class AcceptedChanges {
  constructor(private readonly state: vscode.Memento) {}

  has(taskID: string, placed: PlacedChange): boolean {
    return this.all[taskID]?.[placed.change.path] === sign(placed);
  }

  add(taskID: string, accepted: readonly PlacedChange[]): void {
    const signs = Object.fromEntries(accepted.map((placed) => [placed.change.path, sign(placed)]));
    this.keep(taskID, { ...this.all[taskID], ...signs });
  }

  drop(taskID: string, paths: readonly string[]): void {
    const { [taskID]: signs = {} } = this.all;
    this.keep(taskID, Object.fromEntries(Object.entries(signs).filter(([path]) => !paths.includes(path))));
  }

  private keep(taskID: string, signs: Readonly<Record<string, string>>): void {
    const others = Object.entries(this.all).filter(([id]) => id !== taskID);
    const kept = Object.keys(signs).length === 0 ? others : [...others, [taskID, signs] as const];
    void this.state.update(ACCEPTED, Object.fromEntries(kept.slice(-TASK_COUNT)));
  }

  private get all(): Accepted {
    return this.state.get<Accepted>(ACCEPTED, {});
  }
}

/** Hashes the content after the change; where the full content isn't known, the current content as well. */
function sign({ change: { after }, present }: PlacedChange): string {
  const hash = createHash("sha256").update(JSON.stringify(after));
  if (after.kind !== "text" && present.kind === "file") hash.update(present.bytes);
  return hash.digest("base64url").slice(0, 22);
}
