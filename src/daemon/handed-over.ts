import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { openFolder } from "../rpc/arguments.ts";
import type { OpenFolder } from "../rpc/contract.ts";
import { ifPresent } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";

/*
 * Folders in which work continues, as one daemon hands them to the next. The file exists only for the
 * moment of the hand-over, because environments contain secrets.
 */

const fileIn = (stateFolder: string): string => join(stateFolder, "handed-over.json");

/** Stores the folders for the next daemon. */
export async function writeHandedOver(stateFolder: string, folders: readonly OpenFolder[]): Promise<void> {
  if (folders.length > 0) await writePrivateFile(fileIn(stateFolder), JSON.stringify(folders));
}

/** Reads and removes what the previous daemon handed over. Throws if the file cannot be read. */
export async function takeHandedOver(stateFolder: string): Promise<readonly OpenFolder[]> {
  const file = fileIn(stateFolder);
  try {
    return z.parse(z.array(openFolder), JSON.parse((await ifPresent(readFile(file, "utf8"))) ?? "[]"));
  } finally {
    await rm(file, { force: true });
  }
}
