import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { messageOf } from "../engine/errors.ts";
import { Emitter, type Event } from "../engine/event.ts";
import type { Logger, TaskMemoryStore } from "../engine/ports.ts";
import { withTombstone, type Tombstone } from "../engine/find-task.ts";
import type { TaskRecord } from "../engine/task.ts";
import { folderSettings, keptTasks } from "../rpc/arguments.ts";
import type { FolderSettings, KeptTasks } from "../rpc/contract.ts";
import { codeOf } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

const FILE_VERSION = 1;

const keptFile = z.extend(keptTasks, {
  v: z.literal(FILE_VERSION),
  isUsed: z.optional(z.boolean()),
  settings: z.catch(z.optional(folderSettings), undefined),
});

interface Kept extends KeptTasks {
  /** Whether the folder was connected to a server, and has not disconnected on purpose. */
  readonly isUsed?: boolean | undefined;
  /** The settings for reopening the folder without a window. They contain no secrets. */
  readonly settings?: FolderSettings | undefined;
}

/** The state of a folder that outlives the daemon, in a file of the private state folder. */
export class StateFile implements TaskMemoryStore {
  /** What remains to be written. Undefined if the file is up to date. */
  private unwritten: Kept | undefined;
  private writing: Promise<void> = Promise.resolve();
  private readonly burials: Emitter<Tombstone>;
  /** Fires when the session of a task is gone. */
  readonly onDidBury: Event<Tombstone>;

  private constructor(
    private readonly path: string,
    private kept: Kept,
    private readonly logger: Logger,
  ) {
    this.burials = new Emitter((error) => logger.error("A listener to lost tasks failed.", error));
    this.onDidBury = this.burials.event;
  }

  /** @param directory the folder's real path */
  static async open(stateFolder: string, directory: string, logger: Logger): Promise<StateFile> {
    const name = createHash("sha256").update(directory).digest("hex").slice(0, 16);
    const path = join(stateFolder, `tasks-${name}.json`);
    return new StateFile(path, await read(path, logger), logger);
  }

  /** Adds what an earlier version of the extension kept. Call it before anything is loaded. */
  takeOver({ tombstones, unsettled }: KeptTasks): void {
    this.keep({
      ...this.kept,
      tombstones: this.kept.tombstones.reduce(withTombstone, tombstones),
      unsettled: [...new Map([...unsettled, ...this.kept.unsettled].map((task) => [task.id, task])).values()],
    });
  }

  load(): readonly Tombstone[] {
    return this.kept.tombstones;
  }

  save(tombstones: readonly Tombstone[]): void {
    this.keep({ ...this.kept, tombstones });
    const last = tombstones.at(-1);
    if (last) this.burials.fire(last);
  }

  loadUnsettled(): readonly TaskRecord[] {
    return this.kept.unsettled;
  }

  saveUnsettled(records: readonly TaskRecord[]): void {
    this.keep({ ...this.kept, unsettled: records });
  }

  get isUsed(): boolean {
    return this.kept.isUsed ?? false;
  }

  setUsed(isUsed: boolean): void {
    if (isUsed !== this.isUsed) this.keep({ ...this.kept, isUsed });
  }

  get settings(): FolderSettings | undefined {
    return this.kept.settings;
  }

  keepSettings({ password: _, ...settings }: FolderSettings): void {
    const kept = { ...settings, watched: false };
    if (JSON.stringify(kept) !== JSON.stringify(this.settings)) this.keep({ ...this.kept, settings: kept });
  }

  /** Resolves when everything has been written, or could not be. */
  written(): Promise<void> {
    return this.writing;
  }

  private keep(kept: Kept): void {
    this.kept = kept;
    const isDue = this.unwritten !== undefined;
    this.unwritten = kept;
    // Changes made while a write is in progress cause one more write.
    if (!isDue) this.writing = this.writing.then(() => this.write());
  }

  private async write(): Promise<void> {
    const { unwritten } = this;
    this.unwritten = undefined;
    try {
      await writePrivateFile(this.path, JSON.stringify({ v: FILE_VERSION, ...unwritten }));
    } catch (error) {
      this.logger.warn(`Couldn't write task state to ${this.path}: ${messageOf(error)}`);
    }
  }
}

async function read(path: string, logger: Logger): Promise<Kept> {
  try {
    return z.parse(keptFile, JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      logger.warn(`Couldn't use the task state in ${path}: ${messageOf(error)}`);
    return { tombstones: [], unsettled: [] };
  }
}
