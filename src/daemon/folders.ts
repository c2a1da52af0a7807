import { isDeepStrictEqual } from "node:util";
import { Refusal } from "../engine/errors.ts";
import { Emitter, type Event, logged } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import { folderOfWorktree } from "../git/worktree-marks.ts";
import type { DaemonStatus, FolderSettings, OpenFolder, Reopening } from "../rpc/contract.ts";
import type { HostedFolder } from "../rpc/folder-host.ts";
import type { DescribedFolder } from "./diagnostics.ts";
import { DaemonFolder, selectSame, type Shared } from "./folder.ts";
import { StateFile } from "./state-files.ts";

/** How a folder without windows is watched for its end. Times are in milliseconds. */
interface Watch {
  /** How often to check whether it is running. */
  readonly everyMs: number;
  /** How long tasks may keep running. */
  readonly keepMs: number;
  /** Why they may not any longer, for the log. */
  readonly why: string;
}

/** Of a folder whose tasks were cancelled: their parents may still have to be notified. */
const STOPPED: Watch = { everyMs: 500, keepMs: 0, why: "the user stopped its background work" };

/** A folder, and the windows that have it open. */
interface OpenedFolder {
  readonly folder: DaemonFolder;
  readonly state: StateFile;
  /** The latest settings of each window. */
  readonly windows: Map<object, FolderSettings>;
  /** The window whose settings apply: the one that changed them last, or else that had the folder open first. */
  leading: object;
  /** How long tasks may keep running after the last window has closed, in milliseconds. */
  keepWorkingMs: number;
  /** Set when the last window has closed the folder; aborted when a window opens it again. */
  left: AbortController | undefined;
}

/** The folders by their real paths: those open in windows, and those in which tasks run without any window. */
export class DaemonFolders {
  /** Includes folders that are still being opened, and those that are being closed. */
  private readonly folders = new Map<string, Promise<OpenedFolder>>();
  private readonly held = new Map<string, OpenedFolder>();
  private hasLeft = false;
  private readonly changes: Emitter<number>;
  /** Fires with the number of folders. */
  readonly onDidChangeCount: Event<number>;

  constructor(private readonly shared: Shared) {
    this.changes = new Emitter(logged(shared.logger, "the folders"));
    this.onDidChangeCount = this.changes.event;
  }

  get count(): number {
    return this.folders.size;
  }

  /** Opens a folder for one window. All windows share one service per folder. */
  async open(opened: OpenFolder): Promise<HostedFolder> {
    const window = {};
    const held = await this.hold(opened);
    // The folder may have been closed in the meantime.
    if (this.held.get(opened.directory) !== held) return this.open(opened);
    held.folder.useEnvironment(opened.env);
    const configure = (settings: FolderSettings): void => this.configure(held, window, settings);
    configure(opened.settings);
    return {
      service: held.folder,
      configure,
      close: () => {
        const { windows, leading } = held;
        windows.delete(window);
        const last = [...windows].at(-1);
        // Such as a window that was reloaded because of its new settings, and came before the old one had left.
        if (last && (windows.size === 1 || window === leading)) this.configure(held, ...last);
        else this.followWindows(held);
      },
    };
  }

  status(): Promise<DaemonStatus["folders"]> {
    return Promise.all(
      [...this.held.values()].map(async ({ folder, windows }) => ({
        directory: folder.directory,
        windows: windows.size,
        tasks: folder.active(),
        server: await folder.server(),
      })),
    );
  }

  describe(): Promise<readonly DescribedFolder[]> {
    return Promise.all(
      [...this.held.values()].map(async ({ folder, windows }) => ({
        opened: folder.opened(),
        windows: windows.size,
        server: await folder.server(),
        snapshot: folder.snapshot(),
      })),
    );
  }

  /** Cancels the tasks of these folders, and closes the folders that no window has open. */
  async stop(directories: readonly string[]): Promise<void> {
    const outcomes = await Promise.allSettled(directories.map((directory) => this.stopWork(directory)));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Continues the work of a folder that no window has open. */
  async openWithoutWindow(left: OpenFolder): Promise<void> {
    const held = await this.hold(left);
    if (this.held.get(left.directory) !== held) return this.openWithoutWindow(left);
    // A window may have opened the folder in the meantime.
    if (held.windows.size > 0) return;
    // A folder already being watched for its end may have had its work stopped, so its watch is not replaced.
    if (!held.left) this.followWindows(held);
    await held.folder.calls.join();
  }

  /** See `DaemonRequests.reopen`. */
  async reopen(asked: string, { env, onlyIfUsed }: Reopening): Promise<void> {
    // An agent in a worktree belongs to the folder for whose task that was made. It can be open as a folder, too.
    for (const directory of [asked, await folderOfWorktree(asked)]) {
      if (directory === undefined) continue;
      const { settings, isUsed } = await StateFile.open(directory, this.shared);
      if (settings && (isUsed || !onlyIfUsed)) await this.openWithoutWindow({ directory, settings, env });
    }
  }

  /**
   * Closes all folders. Their servers keep running for their grace period, so that they can be used again. Resolves to
   * the folders in which work is to continue even if no window comes: one that has a folder open may be too old for the
   * next daemon.
   */
  async leave(): Promise<readonly OpenFolder[]> {
    this.hasLeft = true;
    const left = await Promise.allSettled(this.folders.values());
    const working = [...this.held.values()]
      .filter(({ folder }) => !folder.isSettled())
      .map(({ folder }) => folder.opened());
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
    return working;
  }

  private async stopWork(directory: string): Promise<void> {
    const held = await this.folders.get(directory);
    if (!held || this.held.get(directory) !== held) {
      const { hasWork } = await StateFile.open(directory, this.shared);
      // It ended by itself, unless the last daemon was killed: then it goes on until the folder is opened again.
      if (hasWork) throw notReopened(directory);
      return;
    }
    if (held.folder.isReturning()) throw notReopened(directory);
    this.shared.logger.info(`Stopped all tasks in ${directory}.`);
    try {
      await held.folder.cancelAll();
    } finally {
      if (held.windows.size === 0) await this.keepUntilLeft(held, STOPPED);
    }
  }

  private hold(opened: OpenFolder): Promise<OpenedFolder> {
    const { directory } = opened;
    // The next daemon opens it.
    if (this.hasLeft) return Promise.reject(new Error("The daemon is ending."));
    const known = this.folders.get(directory);
    if (known) return known;
    const holding = this.begin(opened);
    this.folders.set(directory, holding);
    holding.catch(() => {
      this.folders.delete(directory);
      this.changes.fire(this.count);
    });
    this.changes.fire(this.count);
    return holding;
  }

  private async begin(opened: OpenFolder): Promise<OpenedFolder> {
    const { directory, settings, kept } = opened;
    const state = await StateFile.open(directory, this.shared);
    if (kept) state.takeOver(kept);
    const folder = new DaemonFolder(opened, this.shared, state);
    const { keepWorkingMs } = settings;
    const held: OpenedFolder = {
      folder,
      state,
      windows: new Map(),
      leading: {},
      keepWorkingMs,
      left: undefined,
    };
    this.held.set(directory, held);
    this.shared.logger.info(`Opened ${directory}.`);
    return held;
  }

  /**
   * A window whose settings differ from the folder's applies them only by changing them, or if no other one has applied
   * its own. One that names another server gets that only by changing it, or if nobody uses the other.
   */
  private configure(held: OpenedFolder, window: object, settings: FolderSettings): void {
    const { folder, windows } = held;
    const before = windows.get(window);
    windows.set(window, settings);
    const selects = before !== undefined && !selectSame(before, settings);
    const takes = selects || folder.isFree(windows.size === 1);
    const changes = before !== undefined && !isDeepStrictEqual(chosenIn(before), chosenIn(settings));
    const isOther = !selectSame(folder.opened().settings, settings);
    if (changes || (takes && isOther) || !windows.has(held.leading)) held.leading = window;
    if (held.leading === window) {
      held.keepWorkingMs = settings.keepWorkingMs;
      folder.configure(takes ? settings : folder.withItsServer(settings));
    }
    this.followWindows(held);
  }

  private followWindows(held: OpenedFolder): void {
    const { folder, state, windows } = held;
    folder.setWatched([...windows.values()].some(({ watched }) => watched));
    held.left?.abort();
    held.left = undefined;
    if (windows.size > 0) return state.setAlone(0);
    void this.keepUntilLeft(held, {
      everyMs: this.shared.graceMs,
      keepMs: held.keepWorkingMs,
      why: "no window has had it open for as long as tasks may keep running",
    });
  }

  /** Keeps a folder without windows open while it is running. Resolves once it is closed or a window opens it again. */
  private async keepUntilLeft(held: OpenedFolder, { everyMs, keepMs, why }: Watch): Promise<void> {
    const { clock, logger } = this.shared;
    const { folder, state } = held;
    // It may have been closed while its tasks were being cancelled, and opened again.
    if (this.held.get(folder.directory) !== held) return;
    held.left?.abort();
    held.left = new AbortController();
    const { signal } = held.left;
    // Counted in timer ticks, which pause while the machine sleeps and do not depend on the system clock. The time under
    // earlier daemons counts, too, if they left work.
    let aloneMs = state.hasWork ? Math.min(state.aloneMs, keepMs) : 0;
    state.setAlone(aloneMs);
    for (;;) {
      await pause(clock, everyMs);
      if (signal.aborted) return;
      aloneMs += everyMs;
      state.setAlone(aloneMs);
      const isRunning = await folder.isRunning();
      if (signal.aborted) return;
      if (!isRunning) break;
      // The parent of a task that has just ended must still be notified.
      const isOver = aloneMs >= keepMs + (folder.isNotifying() ? this.shared.graceMs : 0);
      if (!isOver) continue;
      const { url } = folder.opened().settings.server;
      const tasks = `all tasks in ${folder.directory}`;
      logger.warn(`${url ? `Leaving ${tasks} to the user's server` : `Stopping ${tasks}`}: ${why}.`);
      break;
    }
    const { directory } = folder;
    this.held.delete(directory);
    logger.info(`Closed ${directory}.`);
    // Whoever opens it again reads what is written last.
    const closing = folder
      .finish()
      .finally(() => this.folders.delete(directory))
      .then(() => held);
    this.folders.set(directory, closing);
    await closing;
    this.changes.fire(this.count);
  }
}

/** What the user has set: not what they are looking at, nor which password is stored. */
function chosenIn(settings: FolderSettings): FolderSettings {
  return { ...settings, watched: false, password: undefined };
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

function notReopened(directory: string): Refusal {
  return new Refusal(
    "unavailable",
    sentence(
      "The background process has just been restarted and isn't back in {0} yet. Try again in a moment.",
      directory,
    ),
  );
}
