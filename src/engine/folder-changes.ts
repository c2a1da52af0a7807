import type { ConnectionState } from "./connection.ts";
import type { Tombstone } from "./find-task.ts";
import type { PendingRequest, Session } from "./server-model.ts";
import type { Subagent } from "./subagent.ts";
import type { RefusedSubagent } from "./synchronizer.ts";
import type { RecordReading, Task } from "./task.ts";
import type { RefusedSetup } from "./task-worktrees.ts";

/** What an agent was refused, and the user can allow. */
export type Refused = RefusedSubagent | RefusedSetup;

/** A session without its task record, which the task carries. */
export type MirroredSession = Omit<Session, "task"> & {
  readonly task: Exclude<RecordReading, { kind: "task" }> | { readonly kind: "task" };
};

/** Everything that a window shows of a folder. */
export interface FolderSnapshot {
  /** Connected only once the tasks have been read. */
  readonly connection: ConnectionState;
  readonly sessions: readonly MirroredSession[];
  /** Includes cleared tasks. */
  readonly tasks: readonly Task[];
  readonly subagents: readonly Subagent[];
  /** The requests of all sessions of the folder, the oldest first. */
  readonly requests: readonly PendingRequest[];
  readonly tombstones: readonly Tombstone[];
  /** The session in which a user last wrote. Undefined if the folder has none. */
  readonly latestSessionID?: string | undefined;
}

/** One change in a folder. If the changed item is missing, it was removed. */
export type FolderChange =
  | { readonly type: "connection"; readonly state: ConnectionState }
  | { readonly type: "session"; readonly id: string; readonly session?: MirroredSession | undefined }
  | { readonly type: "task"; readonly id: string; readonly task?: Task | undefined }
  | { readonly type: "subagent"; readonly id: string; readonly subagent?: Subagent | undefined }
  | { readonly type: "requests"; readonly requests: readonly PendingRequest[] }
  | { readonly type: "tombstone"; readonly tombstone: Tombstone }
  | { readonly type: "latest-session"; readonly id?: string | undefined }
  /** Replaces everything that was sent before. */
  | { readonly type: "reset"; readonly snapshot: FolderSnapshot }
  | { readonly type: "near-limit"; readonly task: Task }
  | { readonly type: "refused"; readonly refused: Refused };
