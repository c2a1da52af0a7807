import type { Event } from "../engine/event.ts";
import type {
  DaemonStatus,
  Diagnostics,
  ExecutableSearch,
  FolderService,
  FolderSettings,
  Installation,
  LogLine,
  OpenFolder,
  Reopening,
} from "./contract.ts";

/** A folder as opened by one window. */
export interface HostedFolder {
  readonly service: FolderService;
  configure(settings: FolderSettings): void;
  /** Called when the window closes the folder. */
  close(): void;
}

/** The daemon, as seen by the connections of its windows. */
export interface FolderHost {
  /** Whether this daemon is ending, so that the next one is to be asked. */
  readonly isEnding: boolean;
  /** Opens a folder for one window. All windows share one service per folder. */
  open(folder: OpenFolder): Promise<HostedFolder>;
  /** See `DaemonRequests.reopen`. */
  reopen(directory: string, reopening: Reopening): Promise<void>;
  /** See `DaemonRequests.findExecutable`. */
  findExecutable(search: ExecutableSearch): Promise<string>;
  /** See `DaemonRequests.installCommand`. */
  installCommand(installation: Installation): Promise<string | undefined>;
  status(): Promise<DaemonStatus>;
  diagnostics(): Promise<Diagnostics>;
  /** See `DaemonRequests.stop`. */
  stop(directories: readonly string[]): Promise<void>;
  /** Resolves when another daemon can take over the servers. This daemon then ends. */
  handOver(): Promise<void>;
  /** Fires with log lines for windows. */
  readonly onDidLog: Event<LogLine>;
}
