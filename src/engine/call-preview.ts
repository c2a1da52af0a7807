import type { Text } from "./sentence.ts";

/** A task that a call would cancel or clear. */
export interface AffectedTask {
  readonly id: string;
  readonly isActive: boolean;
}

/** What a call of an agent tool would do, for a user. Texts can quote what models wrote. */
export interface CallPreview {
  /** Shown while the call runs. */
  readonly progress: Text;
  /** What the user has to confirm. Undefined if the call only reads. */
  readonly question?: CallQuestion | undefined;
}

export interface CallQuestion {
  readonly title: Text;
  /** Paragraphs before and after the prompt. */
  readonly facts: readonly Text[];
  readonly notes: readonly Text[];
  /** The beginning of the prompt, if the call has one. */
  readonly prompt?: string | undefined;
  readonly tasks: readonly AffectedTask[];
}
