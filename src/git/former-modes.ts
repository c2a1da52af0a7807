import { resolve } from "node:path";
import { Serial } from "../engine/serial.ts";
import { git, parts } from "./git.ts";
import { requireOurs } from "./our-worktrees.ts";

/** The modes of the missing files of a directory, such as `100755`, by absolute path. */
type Modes = ReadonlyMap<string, string>;

/**
 * The modes that missing files have in the last commit. A task may have deleted hundreds, for which windows ask at the
 * same time, so those who ask while Git is being asked share the next answer.
 */
export class FormerModes {
  /** @param folder whose tasks may have worktrees */
  constructor(private readonly folder: string) {}

  private readonly asking = new Serial();
  /** The answers that Git wasn't asked for yet, by directory. */
  private readonly next = new Map<string, Promise<Modes>>();

  /** Undefined if the last commit doesn't have the file, or the file isn't missing. */
  async of(directory: string, path: string): Promise<string | undefined> {
    const known = this.next.get(directory);
    const modes =
      known ??
      this.asking.run(() => {
        this.next.delete(directory);
        return this.read(directory);
      });
    this.next.set(directory, modes);
    return (await modes).get(path);
  }

  private async read(directory: string): Promise<Modes> {
    const args = ["diff-index", "-z", "--relative", "--no-renames", "--no-abbrev", "--diff-filter=D", "HEAD"];
    let entries: readonly string[] = [];
    try {
      if (directory !== this.folder) await requireOurs(directory, this.folder);
      entries = parts(await git(directory, [...args, "--"]));
    } catch {
      // Without a repository or a commit, there is nothing to know.
    }
    const modes = new Map<string, string>();
    for (let at = 0; at + 1 < entries.length; at += 2)
      modes.set(resolve(directory, entries[at + 1] ?? ""), (entries[at] ?? "").slice(1, 7));
    return modes;
  }
}
