import { invalidArgument } from "./errors.ts";
import type { Random } from "./ids.ts";
import { sentence } from "./sentence.ts";

/** The maximum length of a given description, and of one made from a prompt, in characters. */
const DESCRIPTION_LENGTH = 200;
const MADE_DESCRIPTION_LENGTH = 80;
/** The maximum length of a name without its ending. Paths in a worktree contain it, and Windows limits their length. */
const NAME_LENGTH = 32;
const ENDING_LENGTH = 4;

/** What a task is about, for users: the first line of what was given, or of the prompt. */
export function describe({
  description,
  prompt,
}: {
  readonly description?: string | undefined;
  readonly prompt: string;
}): string {
  return description?.trim()
    ? givenDescription(description)
    : firstLine(prompt.trim(), MADE_DESCRIPTION_LENGTH);
}

/** A description as it is stored. Throws a `Refusal` if it is blank. */
export function givenDescription(description: string): string {
  const given = firstLine(description.trim(), DESCRIPTION_LENGTH);
  if (given === "") throw invalidArgument(sentence("A task needs a name."));
  return given;
}

/** A name for files and Git refs by which users recognize the task: `add-cart-tests-a1b2`. */
export function nameOf(description: string, random: Random): string {
  // Accents become separate characters, which are left out.
  const plain = description.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = plain.match(/[a-z0-9]+/g) ?? ["task"];
  const name = words.join("-").slice(0, NAME_LENGTH).replace(/-$/, "");
  const ending = Array.from({ length: ENDING_LENGTH }, () => Math.floor(random() * 36).toString(36));
  return `${name}-${ending.join("")}`;
}

/** A text for the log: of a worktree's name only the ending, as the rest comes from the task's description. */
export function withoutName(text: string, name: string): string {
  return text.replaceAll(name, `…${name.slice(-ENDING_LENGTH)}`);
}

function firstLine(text: string, limit: number): string {
  const line = text.split(/\r?\n/, 1)[0] ?? "";
  const characters = [...line];
  return characters.length > limit
    ? `${characters
        .slice(0, limit - 1)
        .join("")
        .trimEnd()}…`
    : line;
}
