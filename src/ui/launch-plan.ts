import type { ForkRequest } from "../engine/fork/builder.ts";
import type { Isolation, ModelRef } from "../engine/task.ts";
import type { PromptFile } from "../engine/server-model.ts";

/** The variables that templates can use, as in `${selection}`. */
export const VARIABLES = ["selection", "file", "problem"] as const;
export type Variable = (typeof VARIABLES)[number];

/** The current values of the variables; a variable without a value is missing. */
export type Variables = Partial<Readonly<Record<Variable, string>>>;

/** A reusable prompt. */
export interface Template {
  readonly name: string;
  readonly prompt: string;
  /** The agent for the prompt; undefined asks the user. */
  readonly agent?: string | undefined;
  readonly description?: string | undefined;
}

/** The templates of a setting, and the names of invalid ones. */
export interface TemplateList {
  readonly templates: readonly Template[];
  readonly broken: readonly string[];
}

/** Reads templates from several settings; a later setting overrides earlier ones of the same name. */
export function readTemplates(settings: readonly unknown[]): TemplateList {
  const values = new Map(settings.flatMap((setting) => (isObject(setting) ? Object.entries(setting) : [])));
  const readings = [...values].map(([name, value]) => ({ name, template: readTemplate(name, value) }));
  return {
    templates: readings.flatMap(({ template }) => template ?? []),
    broken: readings.flatMap(({ name, template }) => (template ? [] : [name])),
  };
}

function readTemplate(name: string, value: unknown): Template | undefined {
  const { prompt, agent, description } = isObject(value) ? value : { prompt: value };
  if (typeof prompt !== "string" || prompt.trim() === "") return undefined;
  if (!isTextOrNothing(agent) || !isTextOrNothing(description)) return undefined;
  return { name, prompt, agent: agent || undefined, description: description || undefined };
}

/** The filled-in text, or the reason that there is none: unknown variables, or one without a current value. */
export type Filled =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unknown"; readonly names: readonly string[] }
  | { readonly kind: "missing"; readonly name: Variable };

/** Replaces the variables of a prompt; `$${file}` stands for the text `${file}`. */
export function fillIn(prompt: string, variables: Variables): Filled {
  const unknown = new Set<string>();
  const missing = new Set<Variable>();
  const text = prompt.replace(/(\$?)\$\{([^{}]*)\}/g, (whole, escape: string, name: string) => {
    if (escape) return whole.slice(1);
    if (!isVariable(name)) unknown.add(name);
    else if (variables[name] === undefined) missing.add(name);
    else return variables[name];
    return whole;
  });
  if (unknown.size > 0) return { kind: "unknown", names: [...unknown] };
  const [name] = missing;
  return name === undefined ? { kind: "text", text } : { kind: "missing", name };
}

/** Escapes a prompt, so that it gives the same text when used as a template. */
export function asTemplate(prompt: string): string {
  return prompt.replace(/\$\{[^{}]*\}/g, "$$$&");
}

function isVariable(name: string): name is Variable {
  return VARIABLES.some((known) => known === name);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTextOrNothing(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

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
  /** What was launched when others were refused; it isn't launched again. */
  readonly launched?: readonly Launch[];
}

/** A prompt for an agent. */
interface Launch {
  readonly prompt: string;
  readonly agent: string;
}

/** What is to be launched: every prompt for every agent, except what was launched already. */
export function launchesOf(
  { agents, launched = [] }: Pick<LaunchPlan, "agents" | "launched">,
  prompts: readonly string[],
): readonly Launch[] {
  return prompts.flatMap((prompt) =>
    agents
      .filter((agent) => !launched.some((each) => each.prompt === prompt && each.agent === agent))
      .map((agent) => ({ prompt, agent })),
  );
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
  | {
      readonly kind: "resume";
      readonly taskID: string;
      readonly description: string;
      /** The address of the task's folder. Missing if an earlier version opened the editor. */
      readonly folder?: string | undefined;
    };

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
