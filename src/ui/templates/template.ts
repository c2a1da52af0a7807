/** What a template can name: `${selection}`. */
export const VARIABLES = ["selection", "file", "problem"] as const;
export type Variable = (typeof VARIABLES)[number];

/** What the variables stand for now; one that is missing stands for nothing. */
export type Variables = Partial<Readonly<Record<Variable, string>>>;

/** A prompt that is written once and used often. */
export interface Template {
  readonly name: string;
  readonly prompt: string;
  /** Who is to do it; undefined: the user is asked. */
  readonly agent?: string | undefined;
  readonly description?: string | undefined;
}

/** The templates of a setting, and the names of those that are no templates. */
export interface TemplateList {
  readonly templates: readonly Template[];
  readonly broken: readonly string[];
}

/** Reads settings; of templates with the same name the one of the last setting counts. */
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

/** A template's text, or why there is none: variables that nobody knows, or that stand for nothing now. */
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

/** A prompt as a template that stands for the same text. */
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
