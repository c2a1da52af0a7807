import { existsSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

/** How to start a daemon. */
export interface RecordedProgram {
  /** The editor's executable, which can run as Node. */
  readonly execPath: string;
  /** The path of the daemon's bundle. */
  readonly script: string;
  /** The version of the extension. */
  readonly version: string;
}

const fileIn = (stateFolder: string): string => join(stateFolder, "daemon-program.json");

/** Records how to start the next daemon, for processes other than windows. */
export function recordProgram(stateFolder: string, program: RecordedProgram): Promise<void> {
  return writePrivateFile(fileIn(stateFolder), JSON.stringify(program));
}

/** Undefined if no daemon has run yet, or its program no longer exists. */
export async function readProgram(stateFolder: string): Promise<RecordedProgram | undefined> {
  const program = (await readJson(fileIn(stateFolder))) as RecordedProgram | undefined;
  return program && existsSync(program.execPath) && existsSync(program.script) ? program : undefined;
}
