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
