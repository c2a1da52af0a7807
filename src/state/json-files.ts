import { readFile } from "node:fs/promises";

/** The system's code of an error, such as `ENOENT`. */
export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null | undefined)?.code);
}

/** Undefined: there is no such file. */
export async function ifPresent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** What the file holds. Undefined: there is no such file, or it holds no JSON. */
export async function readJson(path: string): Promise<unknown> {
  return parseJson(await ifPresent(readFile(path, "utf8")));
}

/** Undefined: that is no JSON. */
export function parseJson(text = ""): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
