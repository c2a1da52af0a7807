import { invalidArgument, type Refusal } from "../engine/errors.ts";
import { cellText } from "./plain-text.ts";

/** Marks that the list appends to an ID, and that models copy along. */
const BADGES = /(?:\s*\((?:resumed|forked)\))+$/;

/**
 * A model's input, read leniently if the meaning is clear: null and blank text count as missing, numbers and booleans
 * may be text, and the whole input may be JSON text. If the meaning is unclear, the methods throw a {@link Refusal}
 * that names the parameter and what is expected.
 */
export class ToolInput {
  private readonly given: ReadonlyMap<string, unknown>;

  constructor(sent: unknown) {
    this.given = new Map(Object.entries(objectIn(sent)).filter(([, value]) => !isAbsent(value)));
  }

  text(name: string): string | undefined {
    const value = this.given.get(name);
    if (value === undefined || typeof value === "string") return value;
    throw invalid(name, "text");
  }

  /** The ID of a task or batch, also as the list shows it. An ID of digits may be a number. */
  id(name: string): string | undefined {
    const value = this.given.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== "string" && typeof value !== "number")
      throw invalid(name, "one ID, written as text");
    return cellText(String(value)).replace(BADGES, "");
  }

  /** False if missing. */
  flag(name: string): boolean {
    const value = this.given.get(name) ?? false;
    const word = typeof value === "string" ? value.trim().toLowerCase() : value;
    if (word === true || word === "true") return true;
    if (word === false || word === "false") return false;
    throw invalid(name, "true or false");
  }

  /** @param expected completes "must be …" */
  number(name: string, expected: string): number | undefined {
    const value = this.given.get(name);
    if (value === undefined) return undefined;
    const number = typeof value === "string" ? Number(value) : value;
    if (typeof number !== "number" || Number.isNaN(number)) throw invalid(name, expected);
    return number;
  }

  /** One of these lower-case words, in any capitalization. */
  word<T extends string>(name: string, words: readonly T[]): T | undefined {
    const value = this.given.get(name);
    if (value === undefined) return undefined;
    const wanted = typeof value === "string" ? value.trim().toLowerCase() : value;
    const word = words.find((each) => each === wanted);
    if (word === undefined) throw invalid(name, `one of ${words.join(", ")}, or left out`);
    return word;
  }

  /** The names of the parameters that were given besides these. */
  others(names: readonly string[]): readonly string[] {
    return [...this.given.keys()].filter((name) => !names.includes(name));
  }
}

export function missing(name: string, remedy: string): Refusal {
  return invalidArgument(`The parameter "${name}" is missing; ${remedy}.`);
}

function invalid(name: string, expected: string): Refusal {
  return invalidArgument(`The parameter "${name}" must be ${expected}.`);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function objectIn(sent: unknown): object {
  if (isAbsent(sent)) return {};
  const value = typeof sent === "string" ? parseJson(sent) : sent;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalidArgument("The parameters must be one JSON object.");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
