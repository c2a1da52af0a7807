import type { PromptFile } from "../../engine/server-model.ts";
import type { Variables } from "../templates/template.ts";

/** What a task is launched on. Kept with prompt editors, so it is plain data. */
export interface Subject {
  /** In a few words, for users: `src/login.ts:3-9`. */
  readonly title: string;
  /** What the prompt says of it: its place, and its text where the server could not read it. */
  readonly text: string;
  /** What the server reads of it. */
  readonly files: readonly PromptFile[];
  /** What the user should know of it before they launch. */
  readonly note?: string | undefined;
  /** What templates make of it. */
  readonly variables: Variables;
}

/** A prompt that says what it is about. */
export function promptOn(subject: Subject | undefined, prompt: string): string {
  return subject ? `${prompt.trimEnd()}\n\n${subject.text}` : prompt;
}
