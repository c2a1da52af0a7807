import { parseArgs } from "node:util";

/** What of the suites is to run. */
export interface Wanted {
  /** Empty: all. */
  readonly suites: readonly string[];
  /** Of the suites that have some, these files alone. */
  readonly files: readonly string[];
  /** A part of the titles. */
  readonly grep: string | undefined;
  /** How many times. */
  readonly repeat: number;
}

/**
 * Reads the command line: names of suites, test files, `--grep`, `--repeat`.
 * @throws with a message that says what is wrong
 */
export function wantedBy(args: readonly string[], known: readonly string[]): Wanted {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { grep: { type: "string", short: "g" }, repeat: { type: "string", default: "1" } },
  });
  const repeat = Number(values.repeat);
  if (!Number.isInteger(repeat) || repeat < 1)
    throw new Error("--repeat needs a whole number of at least 1.");
  const files = positionals.filter((each) => each.endsWith(".ts"));
  const suites = positionals.map((each) => (files.includes(each) ? suiteOf(each) : each));
  const unknown = suites.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`No such suite: ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
  return { suites: [...new Set(suites)], files, grep: values.grep, repeat };
}

/** The suite of a file in `test/<suite>/`. */
export function suiteOf(file: string): string {
  const parts = file.split(/[/\\]/);
  return parts[parts.lastIndexOf("test") + 1] ?? file;
}

/** A line for each title that is there at least once, the most frequent first: `2 of 5: [ISO-1] begins with …`. */
export function countsOf(titles: readonly string[], runs: number): readonly string[] {
  const counts = new Map<string, number>();
  for (const title of titles) counts.set(title, (counts.get(title) ?? 0) + 1);
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([title, count]) => `${count} of ${runs}: ${title}`);
}
