import { createHash } from "node:crypto";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { messageOf, UserFacingError } from "../engine/errors.ts";
import { Emitter, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Clock, Logger, TaskMemoryStore } from "../engine/ports.ts";
import { withTombstone, type Tombstone } from "../engine/find-task.ts";
import { sentence } from "../engine/sentence.ts";
import type { PermissionRequest, UserSave } from "../engine/server-model.ts";
import type { TaskRecord } from "../engine/task.ts";
import { folderSettings, keptTasks } from "../rpc/arguments.ts";
import type { PermissionStore } from "../opencode/reported-permissions.ts";
import { withoutPassword } from "../opencode/server-url.ts";
import type { FolderSettings, KeptTasks } from "../rpc/contract.ts";
import { ifPresent } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

const FILE_VERSION = 1;
/** How many permissions are kept, and how long each may be as JSON, in characters: one can have a change of any size. */
const PERMISSIONS = 100;
const PERMISSION_LENGTH = 50_000;
/** The delay before a failed write is repeated, in milliseconds. */
export const RETRY_MS = 10_000;

const permissionRequest = z.object({
  type: z.literal("permission"),
  id: z.string(),
  sessionID: z.string(),
  permission: z.string(),
  patterns: z.array(z.string()),
  always: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
  files: z.optional(z.array(z.object({ path: z.string(), movedTo: z.optional(z.string()) }))),
  call: z.optional(z.object({ messageID: z.string(), callID: z.string() })),
});

const keptFile = z.extend(keptTasks, {
  v: z.literal(FILE_VERSION),
  isUsed: z.optional(z.boolean()),
  serverKey: z.catch(z.optional(z.string().check(z.regex(/^[0-9a-f]+$/))), undefined),
  settings: z.catch(z.optional(folderSettings), undefined),
  aloneMs: z.catch(z.optional(z.number()), undefined),
  permissions: z.catch(z.optional(z.array(permissionRequest)), undefined),
  saves: z.catch(
    z.optional(z.array(z.object({ path: z.string(), start: z.number(), end: z.number() }))),
    undefined,
  ),
});

interface Kept extends KeptTasks {
  /** Whether the folder was connected to a server, and has not disconnected on purpose. */
  readonly isUsed?: boolean | undefined;
  /** The key of that server, if the extension started it. */
  readonly serverKey?: string | undefined;
  /** The settings for reopening the folder without a window. They contain no secrets. */
  readonly settings?: FolderSettings | undefined;
  /** How long it has been open without a window, in milliseconds, if it is. */
  readonly aloneMs?: number | undefined;
  /** The permissions that agents waited for, which the server may be unable to list. */
  readonly permissions?: readonly PermissionRequest[] | undefined;
  /** What the user saved while agents were running, the latest last. */
  readonly saves?: readonly UserSave[] | undefined;
}

const NOTHING: Kept = { tombstones: [], unsettled: [] };

interface Services {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state of a folder that outlives the daemon, in a file of the private state folder. */
export class StateFile implements TaskMemoryStore, PermissionStore {
  /** What remains to be written. Undefined if the file is up to date. */
  private unwritten: Kept | undefined;
  private writing: Promise<void> = Promise.resolve();
  /** Set after a failed write, as a disk may be full only for a moment. */
  private retry: Disposable | undefined;
  private isClosed = false;
  private readonly burials: Emitter<Tombstone>;
  /** Fires when the session of a task is gone. */
  readonly onDidBury: Event<Tombstone>;

  private constructor(
    private readonly path: string,
    private kept: Kept,
    private readonly services: Services,
  ) {
    const { logger } = services;
    this.burials = new Emitter(logged(logger, "lost tasks"));
    this.onDidBury = this.burials.event;
  }

  /**
   * Rejects if the file can't be read now.
   * @param directory the folder's real path
   */
  static async open(
    directory: string,
    { stateFolder, clock, logger }: Services & { readonly stateFolder: string },
  ): Promise<StateFile> {
    const name = createHash("sha256").update(directory).digest("hex").slice(0, 16);
    const path = join(stateFolder, `tasks-${name}.json`);
    return new StateFile(path, await read(path, logger), { clock, logger });
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

  /** Whether it is kept that tasks are unsettled at the server that the folder rejoins. */
  get hasWork(): boolean {
    return this.isUsed && this.kept.unsettled.length > 0;
  }

  get serverKey(): string | undefined {
    return this.kept.serverKey;
  }

  setUsed(isUsed: boolean, serverKey?: string): void {
    if (isUsed !== this.isUsed || serverKey !== this.serverKey)
      this.keep({ ...this.kept, isUsed, serverKey, ...(!isUsed && { permissions: [] }) });
  }

  get aloneMs(): number {
    return this.kept.aloneMs ?? 0;
  }

  setAlone(aloneMs: number): void {
    if (aloneMs !== this.aloneMs) this.keep({ ...this.kept, aloneMs });
  }

  get saves(): readonly UserSave[] {
    return this.kept.saves ?? [];
  }

  keepSaves(saves: readonly UserSave[]): void {
    this.keep({ ...this.kept, saves });
  }

  get permissions(): readonly PermissionRequest[] {
    return this.kept.permissions ?? [];
  }

  keepPermissions(open: readonly PermissionRequest[]): void {
    const permissions = open
      .filter((one) => JSON.stringify(one).length <= PERMISSION_LENGTH)
      .slice(-PERMISSIONS);
    this.keep({ ...this.kept, permissions });
  }

  get settings(): FolderSettings | undefined {
    return this.kept.settings;
  }

  keepSettings({ password: _, server, ...settings }: FolderSettings): void {
    const url = server.url && withoutPassword(server.url);
    const kept = { ...settings, server: { ...server, url }, watched: false };
    if (JSON.stringify(kept) !== JSON.stringify(this.settings)) this.keep({ ...this.kept, settings: kept });
  }

  /** Resolves when everything has been written, or could not be. Nothing is kept after that. */
  async close(): Promise<void> {
    if (this.retry) this.keep(this.kept);
    let last;
    do await (last = this.writing);
    while (last !== this.writing);
    // Somebody else may open the file from now on, and must not have it overwritten with what is older.
    this.isClosed = true;
    this.stopRetrying();
  }

  private keep(kept: Kept): void {
    this.kept = kept;
    if (this.isClosed) return;
    this.stopRetrying();
    const isDue = this.unwritten !== undefined;
    this.unwritten = kept;
    // Changes made while a write is in progress cause one more write.
    if (!isDue) this.writing = this.writing.then(() => this.write());
  }

  private stopRetrying(): void {
    this.retry?.dispose();
    this.retry = undefined;
  }

  private async write(): Promise<void> {
    const { unwritten } = this;
    const { clock, logger } = this.services;
    this.unwritten = undefined;
    try {
      await writePrivateFile(this.path, JSON.stringify({ v: FILE_VERSION, ...unwritten }));
    } catch (error) {
      logger.warn(`Couldn't write task state to ${this.path}: ${messageOf(error)}`);
      // What has changed meanwhile is about to be written anyway.
      if (!this.unwritten) this.retry = clock.after(RETRY_MS, () => this.keep(this.kept));
    }
  }
}

/** Rejects if there is a file and it can't be read, perhaps only for a moment: what is read is written again later. */
async function read(path: string, logger: Logger): Promise<Kept> {
  const text = await ifPresent(readFile(path, "utf8")).catch((error: unknown) => {
    throw new UserFacingError(
      sentence(
        "Couldn't read what is kept of this folder: {0}. Make {1} readable or move it away, then try again.",
        messageOf(error),
        path,
      ),
    );
  });
  if (text === undefined) return NOTHING;
  try {
    return z.parse(keptFile, JSON.parse(text));
  } catch (error) {
    const aside = `${path}.invalid`;
    logger.warn(`Couldn't use the task state in ${path}, now ${aside}: ${messageOf(error)}`);
    // If it can't be renamed, it can't be overwritten either.
    await rename(path, aside).catch(() => undefined);
    return NOTHING;
  }
}
