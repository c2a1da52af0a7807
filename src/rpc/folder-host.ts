import type { Event } from "../engine/event.ts";
import type {
  DaemonStatus,
  FolderService,
  FolderSettings,
  LogLine,
  OpenFolder,
  Reopening,
} from "./contract.ts";

/** A folder as one window has it open. */
export interface HostedFolder {
  readonly service: FolderService;
  configure(settings: FolderSettings): void;
  /** The window has left the folder. */
  close(): void;
}

/** What the daemon does for its windows. */
export interface FolderHost {
  /** For one window; the same folder has the same service for all of them. */
  open(folder: OpenFolder): Promise<HostedFolder>;
  /** See `DaemonRequests.reopen`. */
  reopen(directory: string, reopening: Reopening): Promise<void>;
  status(): Promise<DaemonStatus>;
  /** See `DaemonRequests.stop`. */
  stop(directories: readonly string[]): Promise<void>;
  /** Resolves when another daemon can go on with the servers. Afterwards this one ends. */
  handOver(): Promise<void>;
  /** What windows show of the log. */
  readonly onDidLog: Event<LogLine>;
}
