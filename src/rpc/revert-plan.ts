import type { Sentence } from "../engine/sentence.ts";

/** A file as a window finds it. */
export interface FoundFile {
  /** The path as users of the window know it. */
  readonly name: string;
  readonly present: PresentText;
}

/** The current text of a file. */
export type PresentText =
  | {
      readonly kind: "file";
      /** Undefined if the file isn't UTF-8. */
      readonly text?: string | undefined;
      readonly isUnsaved: boolean;
    }
  | { readonly kind: "absent" }
  /** Not in the workspace, or reached through a link. */
  | { readonly kind: "outside" }
  /** Not a regular file, or not readable. */
  | { readonly kind: "unreadable" };

/** Why a change isn't reverted. The values are stable, as programs may depend on them. */
export type RefusalReason =
  /** The task or one of its subtasks is still running. */
  | "at-work"
  /** Another running task has changed the file. */
  | "worked-on"
  | "outside"
  | "unsaved"
  | "unreadable"
  /** The previous content isn't fully known. */
  | "no-snapshot"
  | "binary"
  /** The previous content wasn't UTF-8, so its text is incomplete. */
  | "encoding"
  /** It is unclear who changed the file. */
  | "doubtful"
  /** Someone else also changed the file between the two sides of the change. */
  | "mixed"
  /** Someone changed the file after the task, and the changes can't be separated. */
  | "changed-since";

/** What reverting a change does to the file. */
export type RevertPlan =
  /** `isMerged`: later changes by others are kept. `mode`: the permissions of a file that was executable. */
  | {
      readonly kind: "write";
      readonly text: string;
      readonly isMerged: boolean;
      readonly mode?: number | undefined;
    }
  /** The task created the file. */
  | { readonly kind: "delete" }
  /** Nothing of the change is left, regardless of later changes in other places. */
  | { readonly kind: "nothing" }
  /** `why` names the file, the reason and what to do. */
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly why: Sentence };
