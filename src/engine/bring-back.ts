/** A file that differs between two states. Paths are relative to the repository's top folder, with slashes. */
export interface ChangedFile {
  readonly path: string;
  /** The path before it was renamed. */
  readonly from?: string | undefined;
  readonly kind: ChangeKind;
  /** Lines; 0 for binary files. */
  readonly added: number;
  readonly removed: number;
  readonly isBinary: boolean;
}

export const CHANGE_KINDS = ["added", "modified", "deleted", "renamed", "mode"] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/**
 * Why the user's and the agent's changes don't fit together in a file. `content`: both changed the same lines, or one
 * binary file. `kind`: they made different things of one path, such as a file and a folder, or gave one file two names.
 */
export const CONFLICTS = ["content", "both-added", "deleted-by-you", "deleted-by-agent", "kind"] as const;
export type Conflict = (typeof CONFLICTS)[number];

/** The file of one side at a path, by its Git mode. */
export interface Version {
  readonly mode: string;
  readonly blob: string;
}

/** A file that bringing back would change in the folder. Lines are counted against the folder as it is. */
export interface PlannedFile extends ChangedFile {
  /** Undefined if the change applies cleanly. */
  readonly conflict?: Conflict | undefined;
  /** Of a file in conflict, what each side has at its path, under whatever name. */
  readonly versions?: Versions | undefined;
  /** Whether the merged file has conflict markers. Git writes none into what it doesn't merge as text, and keeps one side. */
  readonly hasMarkers?: boolean | undefined;
}

export interface Versions {
  readonly mine?: Version | undefined;
  readonly agents?: Version | undefined;
}

/** Whether a file is in conflict in a way that an agent can't merge as text, so that only the user can decide. */
export function isForUser({ conflict, isBinary, hasMarkers }: PlannedFile): boolean {
  switch (conflict) {
    case undefined:
      return false;
    case "content":
    case "both-added":
      return !hasMarkers;
    case "deleted-by-you":
    case "deleted-by-agent":
      return isBinary;
    case "kind":
      return true;
  }
}

/** What bringing the work of a worktree back would do to the folder, as both were when it was planned. */
export interface BringBackPlan {
  /** The top folder of the folder's repository, to which paths are relative. */
  readonly root: string;
  /** The trees of the folder, of the worktree, and of both merged. */
  readonly mine: string;
  readonly agents: string;
  readonly merged: string;
  /** By path. */
  readonly files: readonly PlannedFile[];
  /** The commits by which conflict markers name the sides. */
  readonly commits: { readonly mine: string; readonly agents: string };
}

/** What the folder gets for a planned file: `mine` changes nothing. */
export const TAKES = ["mine", "merged", "agents", "markers"] as const;

export interface FileChoice {
  readonly path: string;
  readonly take: (typeof TAKES)[number];
}

export const FILE_MODES = ["file", "executable", "symlink"] as const;
export type FileMode = (typeof FILE_MODES)[number];

/** The exact bytes of a file, kept as a Git object. */
export interface KeptFile {
  readonly path: string;
  readonly mode: FileMode;
  /** Undefined if there is no such file. */
  readonly blob?: string | undefined;
}

/** What bringing back has written to the folder, so that it can be undone. */
export interface BroughtBack {
  readonly before: readonly KeptFile[];
  readonly after: readonly KeptFile[];
  /** The new texts of files with unsaved changes, by path, which the editor still has to apply. */
  readonly texts: Readonly<Record<string, string>>;
}

/** A worktree of a task, as a user decides whether to keep it. */
export interface ListedWorktree {
  readonly name: string;
  /** In milliseconds since 1970. */
  readonly made: number;
  /** Bytes on disk. */
  readonly size: number;
  /** What differs from its first state. Undefined if its files are gone or cannot be read. */
  readonly files?: readonly ChangedFile[] | undefined;
  /** The number of commits that no branch or tag contains. */
  readonly commits: number;
  /** Its task, unless that no longer exists. */
  readonly task?:
    { readonly id: string; readonly description: string; readonly isRunning: boolean } | undefined;
}
