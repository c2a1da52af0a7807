import type { PromptFile } from "../../engine/server-model.ts";
import type { Variables } from "../templates/template.ts";

/** The subject of a task, such as a selection or files. Plain data, because it is stored with prompt editors. */
export interface Subject {
  /** A short name for users: `src/login.ts:3-9`. */
  readonly title: string;
  /** The text added to the prompt: the place, and the content if the server can't read it. */
  readonly text: string;
  /** The files that the server reads. */
  readonly files: readonly PromptFile[];
  /** A hint for the user before the launch. */
  readonly note?: string | undefined;
  /** The values of template variables. */
  readonly variables: Variables;
}

/** Adds the subject to the prompt. */
export function promptOn(subject: Subject | undefined, prompt: string): string {
  return subject ? `${prompt.trimEnd()}\n\n${subject.text}` : prompt;
}
