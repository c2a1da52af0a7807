import { existsSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

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
  const program = (await readJson(fileIn(stateFolder))) as RecordedProgram | undefined;
  return program && existsSync(program.execPath) && existsSync(program.script) ? program : undefined;
}
