import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { openFolder } from "../rpc/arguments.ts";
import type { OpenFolder } from "../rpc/contract.ts";
import { ifPresent } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

/*
 * Folders in which work goes on without a window, as one daemon hands them to the next. They are in a file for that moment
 * only, as there are secrets in an environment.
 */

const fileIn = (stateFolder: string): string => join(stateFolder, "handed-over.json");

/** Keeps them for the daemon that comes now. */
export async function writeHandedOver(stateFolder: string, folders: readonly OpenFolder[]): Promise<void> {
  if (folders.length > 0) await writePrivateFile(fileIn(stateFolder), JSON.stringify(folders));
}

/** What the daemon before this one handed over. Throws where that cannot be read. */
export async function takeHandedOver(stateFolder: string): Promise<readonly OpenFolder[]> {
  const file = fileIn(stateFolder);
  try {
    return z.parse(z.array(openFolder), JSON.parse((await ifPresent(readFile(file, "utf8"))) ?? "[]"));
  } finally {
    await rm(file, { force: true });
  }
}
