/**
 * A translatable text: English, with `{0}`, `{1}`, … in place of values. The UI translates it where it is shown;
 * programs, agents and logs get {@link english}.
 */
export interface Sentence {
  readonly template: string;
  readonly values: readonly (Text | number)[];
}

/** A translatable sentence, or a text shown as it is: from the server, from a model, or English for a program. */
export type Text = string | Sentence;

/** @param template a literal, which is the key of its translations */
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

/** Whether a value is a text. For values from another process. */
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
