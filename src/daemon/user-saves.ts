import { realpath } from "node:fs/promises";
import type { TaskEngine } from "../engine/engine.ts";
import type { Disposable, Event } from "../engine/event.ts";
import { Serial } from "../engine/serial.ts";
import type { UserSave } from "../engine/server-model.ts";
import { isRunning } from "../engine/subagent.ts";
import type { Connecting } from "./connecting.ts";
import type { StateFile } from "./state-files.ts";
import { isInside } from "./workspace-image.ts";

/** The number of periods that are remembered. */
const COUNT = 500;
/** Saves of a file count as one period if less time is between them, in milliseconds: editors may save at each pause. */
const TOGETHER_MS = 10_000;

/** A file that the user saved, and when, in milliseconds since 1970. */
export interface SavedFile {
  readonly path: string;
  readonly at: number;
}

export interface UserSavesParts {
  readonly directory: string;
  readonly engine: Pick<TaskEngine, "allTasks" | "subagents" | "worktrees">;
  readonly connecting: Pick<Connecting, "state" | "onDidChange">;
  readonly state: Pick<StateFile, "saves" | "keepSaves">;
}

/**
 * Remembers which files of a folder and its worktrees the user saved while agents were running. Snapshots show what was
 * saved then as changed by whichever command was running, and reverting its change would take it back as well.
 */
export class UserSaves implements Disposable {
  /** What was saved while it isn't known which agents are running. */
  private undecided: readonly SavedFile[] = [];
  private readonly notes = new Serial();
  private readonly subscriptions: readonly Disposable[];

  constructor(
    private readonly parts: UserSavesParts,
    saved: Event<SavedFile>,
  ) {
    this.subscriptions = [
      saved((file) => {
        this.undecided = [...this.undecided, file].slice(-COUNT);
        this.decide();
      }),
      parts.connecting.onDidChange(() => this.decide()),
    ];
  }

  get all(): readonly UserSave[] {
    return this.parts.state.saves;
  }

  /** Resolves once what was saved so far is remembered, as far as it can be decided. */
  noted(): Promise<void> {
    return this.notes.run(() => Promise.resolve());
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private decide(): void {
    if (this.parts.connecting.state.kind !== "connected") return;
    for (const { path, at } of this.undecided)
      if (this.hadAgents(at)) void this.notes.run(() => this.note(path, at));
    this.undecided = [];
  }

  private async note(path: string, at: number): Promise<void> {
    const { directory, engine, state } = this.parts;
    const real = await realPath(path);
    if (![directory, ...engine.worktrees.directories()].some((folder) => isInside(folder, real))) return;
    const { saves } = state;
    const last = saves.findLast((save) => save.path === real);
    const known = last && Math.abs(at - last.end) < TOGETHER_MS ? last : undefined;
    // A window with several folders reports a save for each of them.
    if (known && known.start <= at && at <= known.end) return;
    const save = { path: real, start: Math.min(known?.start ?? at, at), end: Math.max(known?.end ?? at, at) };
    state.keepSaves([...saves.filter((one) => one !== known), save].slice(-COUNT));
  }

  /** Whether an agent was running at this time. */
  private hadAgents(at: number): boolean {
    const { engine } = this.parts;
    return [...engine.allTasks(), ...engine.subagents.all()].some(
      (child) => isRunning(child) || (child.endedAt ?? 0) >= at,
    );
  }
}

/** Has the conflicts of a worktree predicted again when a file in it is saved, in whichever window. */
export function followWorktrees(
  saved: Event<SavedFile>,
  { worktrees, worktreeWork }: Pick<TaskEngine, "worktrees" | "worktreeWork">,
): Disposable {
  const look = async (path: string): Promise<void> => {
    const real = await realPath(path);
    for (const directory of worktrees.directories())
      if (isInside(directory, real)) worktreeWork.userChanged(directory);
  };
  return saved(({ path }) => void look(path));
}

/** The editor may have opened a file through a link. */
function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
