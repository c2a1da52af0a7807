import { createHash } from "node:crypto";
import type * as vscode from "vscode";
import type { FileChange } from "../../engine/server-model.ts";
import type { Present } from "./revert-plan.ts";

const ACCEPTED = "asyncagents.acceptedChanges";
/** Tasks whose accepted changes are remembered. */
const TASK_COUNT = 200;

/** By task, then by path: a sign of what the task had made of the file. */
type Accepted = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A change and what is in its place now. */
export interface PlacedChange {
  readonly change: FileChange;
  readonly present: Present;
}

/** Which changes a user has accepted. One of the same file that comes later is another one. */
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

/** Where what the task left is not known whole, what is there now stands for it. */
function sign({ change: { after }, present }: PlacedChange): string {
  const hash = createHash("sha256").update(JSON.stringify(after));
  if (after.kind !== "text" && present.kind === "file") hash.update(present.bytes);
  return hash.digest("base64url").slice(0, 22);
}
