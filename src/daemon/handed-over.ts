import { readFile, rm, stat } from "node:fs/promises";
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

/** How long after the hand-over the next daemon may begin, in milliseconds. */
const LATEST_MS = 300_000;

const fileIn = (stateFolder: string): string => join(stateFolder, "handed-over.json");

/** Stores the folders for the next daemon. */
export async function writeHandedOver(stateFolder: string, folders: readonly OpenFolder[]): Promise<void> {
  if (folders.length > 0) await writePrivateFile(fileIn(stateFolder), JSON.stringify(folders));
}

/**
 * Reads and removes what the previous daemon handed over. Throws if the file can't be read, and then keeps it, as that may
 * pass.
 * @param onLost receives why a folder, or all of them, can't be used
 */
export async function takeHandedOver(
  stateFolder: string,
  now: number,
  onLost: (error: unknown) => void,
): Promise<readonly OpenFolder[]> {
  const file = fileIn(stateFolder);
  const found = await ifPresent(Promise.all([readFile(file, "utf8"), stat(file)]));
  if (!found) return [];
  await rm(file, { force: true }).catch(onLost);
  const [text, { mtimeMs }] = found;
  // The daemon that it was for didn't start. By now, the servers have had their folders opened again, or have ended.
  if (now - mtimeMs > LATEST_MS) return [];
  try {
    return z.parse(z.array(z.unknown()), JSON.parse(text)).flatMap((one) => {
      const { data, error } = z.safeParse(openFolder, one);
      if (error) onLost(error);
      return data ?? [];
    });
  } catch (error) {
    onLost(error);
    return [];
  }
}
