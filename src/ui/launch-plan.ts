import type { ForkRequest } from "../engine/fork/builder.ts";
import type { ModelRef } from "../engine/task.ts";
import type { Subject } from "./editor/subject.ts";

/** What is to become of a prompt, as the user has chosen so far. */
export interface LaunchPlan {
  /** Each of them gets the prompt; none: still to be chosen. */
  readonly agents: readonly string[];
  /** Undefined: the one of the settings, or the agent's own. */
  readonly model?: ModelRef | undefined;
  /** The conversation that the tasks inherit. */
  readonly fork?: ForkDraft | undefined;
  /** What the prompt is about. */
  readonly subject?: Subject | undefined;
  /** Whether the prompt goes without its subject. */
  readonly leavesOutSubject?: boolean | undefined;
  /** The address of the folder that the agents work in; left out: the current one. */
  readonly folder?: string | undefined;
  /** Whether each section of a text is a prompt of its own. */
  readonly splits?: boolean | undefined;
}

/** What goes with the prompts. */
export function subjectOf({ subject, leavesOutSubject }: LaunchPlan): Subject | undefined {
  return leavesOutSubject ? undefined : subject;
}

/** A fork as the user has it before them. */
export interface ForkDraft {
  /** What is forked, in a few words. */
  readonly title: string;
  readonly request: ForkRequest;
  /** How the message begins that the fork starts from; undefined: it starts from the beginning. */
  readonly start?: string | undefined;
  readonly parentSessionID: string;
}

/** What the text of a prompt editor is for. */
export type PromptTarget =
  | { readonly kind: "launch"; readonly plan: LaunchPlan }
  | { readonly kind: "resume"; readonly taskID: string; readonly description: string };
