import type { ConnectionState } from "./connection.ts";
import type { Tombstone } from "./find-task.ts";
import type { Sentence, Text } from "./sentence.ts";
import type { Question, Session } from "./server-model.ts";
import type { Subagent } from "./subagent.ts";
import type { RefusedSubagent } from "./synchronizer.ts";
import type { RecordReading, Task } from "./task.ts";
import type { RefusedSetup } from "./worktree-setups.ts";

/** What an agent was refused, and the user can allow. */
export type Refused = RefusedSubagent | RefusedSetup;

/** A session without its rules, and without its task record, which the task carries. */
export type MirroredSession = Omit<Session, "permission" | "task"> & {
  readonly task: Exclude<RecordReading, { kind: "task" }> | { readonly kind: "task" };
};

/**
 * A request in words. The plain texts may contain anything that agents and models wrote, but no hidden characters:
 * whoever shows them where text can become links or icons has to sanitize them.
 */
interface RequestWords {
  readonly id: string;
  readonly sessionID: string;
  /** The kind of request as a heading: `Run a Command`. */
  readonly title: Text;
  /** A codicon's name. */
  readonly icon: string;
  /** The full subject: the command, file, address or question. */
  readonly subject: string;
  /** Asks for this. The window adds the values: who asks, what it shows of the subject, and the number of further questions. */
  readonly wish: Sentence;
}

interface MirroredPermission extends RequestWords {
  readonly type: "permission";
  /** What it is about, in full, each item once. */
  readonly subjects: readonly string[];
  /** Whether the subject says all of it, so that it can be allowed by that alone. False until its tool call is known. */
  readonly isTold: boolean;
  /** The agent's own reason, unless it is already part of the subject. */
  readonly reason?: string | undefined;
  /** The change that the agent proposes to make to files, as a unified diff. */
  readonly diff?: string | undefined;
  /** The requested permission: `bash`, `edit`, `external_directory`, … */
  readonly permission: string;
  /** What the answer "always" covers. Undefined if it cannot be given. */
  readonly always?: Text | undefined;
}

interface MirroredQuestion extends RequestWords {
  readonly type: "question";
  readonly questions: readonly Question[];
}

/** A permission or question that waits for a user, as windows show it. */
export type MirroredRequest = MirroredPermission | MirroredQuestion;

/** Everything that a window shows of a folder. */
export interface FolderSnapshot {
  /** Connected only once the tasks have been read. */
  readonly connection: ConnectionState;
  readonly sessions: readonly MirroredSession[];
  /** Includes cleared tasks. */
  readonly tasks: readonly Task[];
  readonly subagents: readonly Subagent[];
  /** The requests of all sessions of the folder, the oldest first. */
  readonly requests: readonly MirroredRequest[];
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
  | { readonly type: "requests"; readonly requests: readonly MirroredRequest[] }
  | { readonly type: "tombstone"; readonly tombstone: Tombstone }
  | { readonly type: "latest-session"; readonly id?: string | undefined }
  /** Replaces everything that was sent before. */
  | { readonly type: "reset"; readonly snapshot: FolderSnapshot }
  | { readonly type: "near-limit"; readonly task: Task }
  | { readonly type: "refused"; readonly refused: Refused };
