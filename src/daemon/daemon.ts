import { dirname, join } from "node:path";
import { messageOf } from "../engine/errors.ts";
import { Emitter, logged, type Disposable } from "../engine/event.ts";
import type { Logger } from "../engine/ports.ts";
import { installCommand, preparePrivateCopy } from "../opencode/install.ts";
import { findOpenCode } from "../opencode/locate.ts";
import { requireSupported } from "../opencode/version-look.ts";
import { ServerEvents } from "../opencode/server-events.ts";
import type {
  DaemonStatus,
  Diagnostics,
  ExecutableSearch,
  Installation,
  OpenFolder,
  Reopening,
} from "../rpc/contract.ts";
import { DaemonServer } from "../rpc/daemon-server.ts";
import type { FolderHost, HostedFolder } from "../rpc/folder-host.ts";
import { recordProgram } from "../rpc/recorded-program.ts";
import { OwnServers } from "../opencode/own-servers.ts";
import { copyPrivateFile, ensurePrivateFolder, sweepDrafts } from "../state/private-files.ts";
import { StartLock } from "../state/start-lock.ts";
import { ThreadTokenCounter } from "../tokens/token-counter.ts";
import { systemClock } from "../rpc/clock.ts";
import { collectDiagnostics } from "./diagnostics.ts";
import { DaemonFolders } from "./folders.ts";
import { takeHandedOver, writeHandedOver } from "./handed-over.ts";
import { Lifetime } from "./lifetime.ts";
import { Semaphore } from "./semaphore.ts";
import { LogFile } from "./log-file.ts";

/** How long folders and the daemon outlive their windows, in milliseconds, so that they survive a reload. */
const GRACE_MS = 60_000;
/** How long sending the answer to a hand-over may take, in milliseconds. */
const ANSWER_MS = 100;
/** How many servers may be starting at the same time. */
const STARTS_AT_ONCE = 2;

const LOST_WORK = "Work that goes on could not be handed from one daemon to the next.";

export interface DaemonOptions {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  /** The version of the extension. */
  readonly version: string;
  readonly home: string;
  /** The daemon's own bundle. The bundles that it starts are in the same folder. */
  readonly script: string;
  readonly graceMs?: number;
  /** Called once everything is closed, because nobody needs this daemon any more or another one takes over. */
  readonly onEnd: () => void;
}

/** The single daemon process that serves all windows of this user. */
export class Daemon implements FolderHost {
  private readonly startedAt = systemClock.now();
  private readonly tokens: ThreadTokenCounter;
  private readonly ownServers: OwnServers;
  private readonly folders: DaemonFolders;
  private readonly lifetime: Lifetime;
  private readonly sweep: Disposable;
  private swept: Promise<void> | undefined;
  private server: DaemonServer | undefined;
  private ending: Promise<void> | undefined;
  readonly onDidLog;

  private constructor(
    private readonly options: DaemonOptions,
    private readonly log: LogFile,
    tokenizer: string,
  ) {
    const { stateFolder, home, script, graceMs = GRACE_MS } = options;
    const bundle = (name: string): string => join(dirname(script), name);
    this.onDidLog = log.onLine;
    this.tokens = new ThreadTokenCounter({ script: tokenizer, clock: systemClock });
    this.ownServers = new OwnServers({ stateFolder, graceMs, clock: systemClock, logger: log });
    this.folders = new DaemonFolders({
      stateFolder,
      home,
      bundle,
      ownServers: this.ownServers,
      tokens: this.tokens,
      starts: new Semaphore(STARTS_AT_ONCE),
      events: new ServerEvents(systemClock),
      saves: new Emitter(logged(log, "saved files")),
      graceMs,
      clock: systemClock,
      logger: log,
    });
    this.lifetime = new Lifetime(systemClock, graceMs, () => void this.end("nobody needs it"));
    // After this delay, the windows of the previous daemon have reclaimed their servers.
    this.sweep = systemClock.after(graceMs, () => void (this.swept = this.sweepServers()));
    this.folders.onDidChangeCount((folders) => this.lifetime.follow({ folders }));
  }

  /** Resolves when windows can connect. Undefined if another daemon already serves this user. */
  static async start(options: DaemonOptions): Promise<Daemon | undefined> {
    const { stateFolder, version } = options;
    await ensurePrivateFolder(stateFolder);
    const log = new LogFile(stateFolder, () => systemClock.now());
    const daemon = new Daemon(options, log, await keepTokenizer(options, log));
    const server = await DaemonServer.open({
      stateFolder,
      host: daemon,
      version,
      clock: systemClock,
      logger: log,
    });
    if (!server) return undefined;
    daemon.server = server;
    server.onDidChangeWindows((windows) => daemon.lifetime.follow({ windows }));
    log.info(`The daemon of version ${version} begins, process ${process.pid}.`);
    await daemon.recordHowToStart();
    await daemon.takeOverWork();
    // Until now, no window could reach it; one that did while this started has not been counted.
    daemon.lifetime.follow({ windows: server.windows });
    return daemon;
  }

  get isEnding(): boolean {
    return this.ending !== undefined;
  }

  open(folder: OpenFolder): Promise<HostedFolder> {
    return this.folders.open(folder);
  }

  reopen(directory: string, reopening: Reopening): Promise<void> {
    return this.folders.reopen(directory, reopening);
  }

  async findExecutable({ path = "", env }: ExecutableSearch): Promise<string> {
    const { home } = this.options;
    const { executable } = await findOpenCode({ configuredPath: path, env, home });
    await requireSupported(executable, env);
    return executable;
  }

  async installCommand({ isPrivate, env }: Installation): Promise<string | undefined> {
    const { platform } = process;
    const { home } = this.options;
    return isPrivate ? preparePrivateCopy({ platform, env, home }) : installCommand(platform);
  }

  async status(): Promise<DaemonStatus> {
    return { folders: await this.folders.status(), pid: process.pid, startedAt: this.startedAt };
  }

  async diagnostics(): Promise<Diagnostics> {
    const { stateFolder, home, version } = this.options;
    const folders = await this.folders.describe();
    return collectDiagnostics({ stateFolder, home, version, startedAt: this.startedAt, folders });
  }

  stop(directories: readonly string[]): Promise<void> {
    return this.folders.stop(directories);
  }

  handOver(): Promise<void> {
    return this.end("another one takes over", writeHandedOver);
  }

  noteFailure(...[message, error]: Parameters<Logger["error"]>): void {
    this.log.error(message, error);
  }

  /** Records how to start a daemon, for OpenCode's plugin, which starts one if there is no window. */
  private async recordHowToStart(): Promise<void> {
    const { stateFolder, script, version } = this.options;
    try {
      await recordProgram(stateFolder, { execPath: process.execPath, script, version });
    } catch (error) {
      this.log.warn(`OpenCode's plugin cannot start the next daemon: ${messageOf(error)}`);
    }
  }

  private async takeOverWork(): Promise<void> {
    const onLost = (error: unknown): void => this.noteFailure(LOST_WORK, error);
    try {
      for (const folder of await takeHandedOver(this.options.stateFolder, systemClock.now(), onLost))
        this.folders.openWithoutWindow(folder).catch(onLost);
    } catch (error) {
      onLost(error);
    }
  }

  private async sweepServers(): Promise<void> {
    try {
      await this.ownServers.sweep();
    } catch (error) {
      this.log.warn(`The servers that an earlier daemon left could not be ended: ${messageOf(error)}`);
    }
  }

  /**
   * Accepts no more commands, and leaves the servers that are in use to the next daemon.
   * @param handOn how to hand over the work, if another daemon is known to follow
   */
  end(why: string, handOn?: typeof writeHandedOver): Promise<void> {
    this.ending ??= this.leave(why, handOn);
    return this.ending;
  }

  private async leave(why: string, handOn?: typeof writeHandedOver): Promise<void> {
    this.log.info(`The daemon ends: ${why}.`);
    this.lifetime.dispose();
    this.tokens.dispose();
    this.sweep.dispose();
    const [working] = await Promise.all([this.folders.leave(), this.ownServers.leave(), this.swept]);
    const { stateFolder } = this.options;
    await handOn?.(stateFolder, working).catch((error: unknown) => this.noteFailure(LOST_WORK, error));
    try {
      // Sweeping the locks writes drafts of its own.
      await StartLock.sweep(stateFolder);
      await sweepDrafts(stateFolder);
    } catch (error) {
      this.log.warn(`What crashed processes left could not be removed: ${messageOf(error)}`);
    }
    // The caller that asked for the hand-over receives its answer first.
    systemClock.after(ANSWER_MS, () => {
      // When the user logs out, nobody follows, and what ended with the daemon is still to be told.
      this.server?.dispose(!handOn && working.length > 0);
      this.options.onEnd();
    });
  }
}

/** The tokenizer, which the daemon starts when it is needed: a copy, as an update of the extension removes the original. */
async function keepTokenizer({ stateFolder, script }: DaemonOptions, log: Logger): Promise<string> {
  const name = "tokenizer.cjs";
  const [original, copy] = [join(dirname(script), name), join(stateFolder, name)];
  try {
    await copyPrivateFile(original, copy);
    return copy;
  } catch (error) {
    log.warn(`The tokenizer couldn't be copied: ${messageOf(error)}`);
    return original;
  }
}
