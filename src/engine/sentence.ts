/**
 * A text of ours that users may read in their own language: English, with `{0}`, `{1}`, … where the values go. What
 * users read is translated where it is shown; programs, agents and logs get {@link english}.
 */
export interface Sentence {
  readonly template: string;
  readonly values: readonly (Text | number)[];
}

/** A sentence of ours, or words that are shown as they came: those of the server, of a model, or in English for a program. */
export type Text = string | Sentence;

/** @param template a literal, as it is what translations are found by */
export function sentence(template: string, ...values: readonly (Text | number)[]): Sentence {
  return { template, values };
}

export function english(text: Text): string {
  if (typeof text === "string") return text;
  const { template, values } = text;
  return template.replace(/\{(\d+)\}/g, (place, index: string) => {
    const value = values[Number(index)];
    return value === undefined ? place : typeof value === "number" ? String(value) : english(value);
  });
}

/** Whether a value is a text; of use where it came from another process. */
export function isText(value: unknown): value is Text {
  return typeof value === "string" || isSentence(value);
}

export function isSentence(value: unknown): value is Sentence {
  if (typeof value !== "object" || value === null) return false;
  const { template, values } = value as Partial<Sentence>;
  return (
    typeof template === "string" &&
    Array.isArray(values) &&
    values.every((one: unknown) => typeof one === "number" || isText(one))
  );
}
