import type { ForkRequest } from "../engine/fork/builder.ts";
import type { Isolation, ModelRef } from "../engine/task.ts";
import type { PromptFile } from "../engine/server-model.ts";
import type { Variables } from "./template.ts";

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

/** How to launch a prompt, according to the user's choices so far. */
export interface LaunchPlan {
  /** Each of these agents gets the prompt; empty if still to be chosen. */
  readonly agents: readonly string[];
  /** Undefined uses the model from the settings, or the agent's own. */
  readonly model?: ModelRef | undefined;
  /** The conversation that the tasks inherit. */
  readonly fork?: ForkDraft | undefined;
  /** What the prompt is about. */
  readonly subject?: Subject | undefined;
  /** Whether the subject is left out of the prompt. */
  readonly leavesOutSubject?: boolean | undefined;
  /** The address of the folder that the agents work in; by default the current folder. */
  readonly folder?: string | undefined;
  /** Where the tasks work; undefined if the settings or the conversation decide. */
  readonly isolation?: Isolation | undefined;
  /** Whether each section of the text is a separate prompt. */
  readonly splits?: boolean | undefined;
}

/** The subject to send with the prompts. */
export function subjectOf({ subject, leavesOutSubject }: LaunchPlan): Subject | undefined {
  return leavesOutSubject ? undefined : subject;
}

/** A fork that the user is preparing. */
export interface ForkDraft {
  /** The title of the forked conversation. */
  readonly title: string;
  readonly request: ForkRequest;
  /** The beginning of the message that the fork starts from; undefined if it starts with the first message. */
  readonly start?: string | undefined;
  readonly parentSessionID: string;
}

/** The purpose of a prompt editor. */
export type PromptTarget =
  | { readonly kind: "launch"; readonly plan: LaunchPlan }
  | { readonly kind: "resume"; readonly taskID: string; readonly description: string };

/** Splits a text into prompts at lines of `---`, leaving out blank sections. */
export function splitSections(text: string): readonly string[] {
  return text
    .split(/^-{3,}[ \t]*$/m)
    .map((section) => section.trim())
    .filter(Boolean);
}

export function joinSections(prompts: readonly string[]): string {
  return prompts.join("\n\n---\n\n");
}
