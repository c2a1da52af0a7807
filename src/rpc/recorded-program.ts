import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writePrivateFile } from "../state/private-files.ts";
import { codeOf } from "./daemon-files.ts";

/** What a daemon is started with. */
export interface RecordedProgram {
  /** The editor's own executable, which runs as Node when told to. */
  readonly execPath: string;
  /** The daemon's bundle. */
  readonly script: string;
  /** The extension's. */
  readonly version: string;
}

const fileIn = (stateFolder: string): string => join(stateFolder, "daemon-program.json");

/** Keeps it for whoever starts the next daemon and is no window. */
export function recordProgram(stateFolder: string, program: RecordedProgram): Promise<void> {
  return writePrivateFile(fileIn(stateFolder), JSON.stringify(program));
}

/** Undefined: no daemon ran yet, or what the last one was started with is gone. */
export async function readProgram(stateFolder: string): Promise<RecordedProgram | undefined> {
  try {
    const program = JSON.parse(await readFile(fileIn(stateFolder), "utf8")) as RecordedProgram;
    return existsSync(program.execPath) && existsSync(program.script) ? program : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
