import { readFile } from "node:fs/promises";

/** The error code of the system, such as `ENOENT`. */
export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null | undefined)?.code);
}

/** Undefined if the file does not exist. */
export async function ifPresent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The parsed content of a file. Undefined if there is no such file, or it is not valid JSON. */
export async function readJson(path: string): Promise<unknown> {
  return parseJson(await ifPresent(readFile(path, "utf8")));
}

/** Undefined if the text is not valid JSON. */
export function parseJson(text = ""): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
