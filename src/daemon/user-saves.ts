import { realpath } from "node:fs/promises";
import type { TaskEngine } from "../engine/engine.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { UserSave } from "../engine/server-model.ts";
import { isRunning } from "../engine/subagent.ts";
import type { Connecting } from "./connecting.ts";
import type { StateFile } from "./state-files.ts";
import { isInside } from "./workspace-image.ts";

/** The number of periods that are remembered. */
const COUNT = 500;
/** Saves of a file count as one period if less time is between them, in milliseconds: editors may save at each pause. */
const TOGETHER_MS = 10_000;

/** A file that the user saved in any window, and when, in milliseconds since 1970. */
export interface SavedFile {
  readonly path: string;
  readonly at: number;
}

export interface UserSavesParts {
  readonly directory: string;
  readonly engine: Pick<TaskEngine, "allTasks" | "subagents" | "worktrees">;
  readonly connecting: Pick<Connecting, "state">;
  readonly state: Pick<StateFile, "saves" | "keepSaves" | "isUsed">;
}

/**
 * Remembers which files of a folder and its worktrees the user saved while agents were running. Snapshots show what was
 * saved then as changed by whichever command was running, and reverting its change would take it back as well.
 */
export class UserSaves implements Disposable {
  private readonly subscription: Disposable;

  constructor(
    private readonly parts: UserSavesParts,
    saved: Event<SavedFile>,
  ) {
    this.subscription = saved((file) => void this.note(file));
  }

  get all(): readonly UserSave[] {
    return this.parts.state.saves;
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private async note({ path, at }: SavedFile): Promise<void> {
    const { directory, engine, state } = this.parts;
    if (!this.hadAgents(at)) return;
    // The editor may have opened it through a link.
    const real = await realpath(path).catch(() => path);
    if (![directory, ...engine.worktrees.directories()].some((folder) => isInside(folder, real))) return;
    const { saves } = state;
    const last = saves.findLast((save) => save.path === real);
    const known = last && Math.abs(at - last.end) < TOGETHER_MS ? last : undefined;
    const save = { path: real, start: known?.start ?? at, end: Math.max(known?.end ?? at, at) };
    state.keepSaves([...saves.filter((one) => one !== known), save].slice(-COUNT));
  }

  /** Whether an agent was running at this time, or may have been. */
  private hadAgents(at: number): boolean {
    const { connecting, engine, state } = this.parts;
    if (connecting.state.kind !== "connected") return state.isUsed;
    return [...engine.allTasks(), ...engine.subagents.all()].some(
      (child) => isRunning(child) || (child.endedAt ?? 0) >= at,
    );
  }
}
