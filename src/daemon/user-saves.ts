import { realpath } from "node:fs/promises";
import type { UserSave } from "../engine/server-model.ts";
import type { StateFile } from "./state-files.ts";
import { isInside } from "./workspace-image.ts";

/** The number of periods that are remembered. */
const COUNT = 500;
/** Saves of a file count as one period if less time is between them, in milliseconds: editors may save at each pause. */
const TOGETHER_MS = 10_000;

/**
 * Remembers which files the user saved and when. Snapshots show what was saved while a command was running as changed by
 * that command, and reverting its change would take it back as well.
 */
export class UserSaves {
  constructor(private readonly state: Pick<StateFile, "saves" | "keepSaves">) {}

  get all(): readonly UserSave[] {
    return this.state.saves;
  }

  /**
   * @param at when the file was saved, in milliseconds since 1970
   * @param folders where agents work; a file elsewhere isn't remembered
   */
  async note(path: string, at: number, folders: readonly string[]): Promise<void> {
    // The editor may have opened it through a link.
    const real = await realpath(path).catch(() => path);
    if (!folders.some((folder) => isInside(folder, real))) return;
    const { saves } = this.state;
    const last = saves.findLast((save) => save.path === real);
    const known = last && Math.abs(at - last.end) < TOGETHER_MS ? last : undefined;
    const save = { path: real, start: known?.start ?? at, end: Math.max(known?.end ?? at, at) };
    this.state.keepSaves([...saves.filter((one) => one !== known), save].slice(-COUNT));
  }
}
