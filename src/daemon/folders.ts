import { Emitter, type Event } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import type { DaemonStatus, FolderSettings, OpenFolder } from "../rpc/contract.ts";
import type { HostedFolder } from "../rpc/folder-host.ts";
import { Folder, type Shared } from "./folder.ts";
import { StateFile } from "./state-files.ts";

/** A folder, and the windows that have it open. */
interface Held {
  readonly folder: Folder;
  /** What each window said last. */
  readonly windows: Map<object, FolderSettings>;
  /** How long work goes on after the last window has left, in milliseconds. */
  keepWorkingMs: number;
  /** Since the last window has left; aborts once there is one again. */
  left: AbortController | undefined;
}

/** The folders by their real paths: those that windows have open, and those in which work goes on without any. */
export class Folders {
  /** A folder that is only being opened is there already. */
  private readonly folders = new Map<string, Promise<Held>>();
  private readonly held = new Map<string, Held>();
  private readonly changes: Emitter<number>;
  /** Tells how many folders there are. */
  readonly onDidChangeCount: Event<number>;

  constructor(
    private readonly shared: Shared,
    /** How long a folder without windows is kept, in milliseconds: a reload of a window takes a moment. */
    private readonly graceMs: number,
  ) {
    this.changes = new Emitter((error) => shared.logger.error("A listener to the folders failed.", error));
    this.onDidChangeCount = this.changes.event;
  }

  get count(): number {
    return this.folders.size;
  }

  /** For one window; the same folder has the same service for all of them. */
  async open(opened: OpenFolder): Promise<HostedFolder> {
    const window = {};
    const held = await this.hold(opened);
    // It can have ended just now.
    if (this.held.get(opened.directory) !== held) return this.open(opened);
    held.folder.useEnvironment(opened.env);
    const configure = (settings: FolderSettings): void => {
      held.windows.set(window, settings);
      this.configure(held, settings);
    };
    configure(opened.settings);
    return {
      service: held.folder,
      configure,
      close: () => {
        held.windows.delete(window);
        this.followWindows(held);
      },
    };
  }

  status(): DaemonStatus["folders"] {
    return [...this.held.values()].map(({ folder, windows }) => ({
      directory: folder.directory,
      windows: windows.size,
      tasks: folder.active(),
    }));
  }

  /** Leaves all folders; their servers stay for whoever comes within their grace period. */
  async leave(): Promise<void> {
    const left = await Promise.allSettled(this.folders.values());
    this.folders.clear();
    this.held.clear();
    await Promise.all(
      left.map(async (outcome) => {
        if (outcome.status === "rejected") return;
        outcome.value.left?.abort();
        await outcome.value.folder.leave();
      }),
    );
    this.changes.fire(0);
  }

  private hold(opened: OpenFolder): Promise<Held> {
    const { directory } = opened;
    const known = this.folders.get(directory);
    if (known) return known;
    const holding = this.begin(opened);
    this.folders.set(directory, holding);
    holding.catch(() => this.folders.delete(directory));
    this.changes.fire(this.count);
    return holding;
  }

  private async begin(opened: OpenFolder): Promise<Held> {
    const { directory, settings } = opened;
    const { stateFolder, logger } = this.shared;
    const state = await StateFile.open(stateFolder, directory, logger);
    const folder = new Folder(opened, this.shared, state);
    const { keepWorkingMs } = settings;
    const held: Held = { folder, windows: new Map(), keepWorkingMs, left: undefined };
    this.held.set(directory, held);
    logger.info(`${directory} is open.`);
    return held;
  }

  private configure(held: Held, settings: FolderSettings): void {
    held.keepWorkingMs = settings.keepWorkingMs;
    held.folder.configure(settings);
    this.followWindows(held);
  }

  private followWindows(held: Held): void {
    const { folder, windows } = held;
    folder.setWatched([...windows.values()].some(({ watched }) => watched));
    held.left?.abort();
    held.left = undefined;
    if (windows.size > 0) return;
    held.left = new AbortController();
    void this.keepWhileAtWork(held, held.left.signal);
  }

  /** @param signal aborts once a window has the folder open again */
  private async keepWhileAtWork(held: Held, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.shared;
    const { folder } = held;
    const leftAt = clock.now();
    for (;;) {
      await pause(clock, this.graceMs);
      if (signal.aborted) return;
      const isAtWork = await folder.isAtWork();
      if (signal.aborted) return;
      if (!isAtWork) break;
      // Of a task that has just ended, its parent is to know.
      const isOver = clock.now() - leftAt >= held.keepWorkingMs + (folder.isTelling() ? this.graceMs : 0);
      if (!isOver) continue;
      logger.warn(`Work in ${folder.directory} ends: no window had it open for as long as work may go on.`);
      break;
    }
    this.held.delete(folder.directory);
    this.folders.delete(folder.directory);
    logger.info(`${folder.directory} is closed.`);
    await folder.finish();
    this.changes.fire(this.count);
  }
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}
