import { readFile, realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve } from "node:path";
import { invalidArgument } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";

const MAX_BYTES = 2_000_000;
/** How files of each type begin. */
const TYPES: readonly (readonly [type: string, start: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

/**
 * Reads an image that an agent named, as a `data:` address. Only files in these folders, and not by a link to elsewhere.
 * Rejects with a refusal whose text is shown in place of the image.
 * @param folders where a relative path is looked up, in this order
 */
export async function readImage(path: string, folders: readonly string[]): Promise<string> {
  const places = await Promise.all(folders.map((folder) => realFile(folder, resolve(folder, path))));
  const file = places.find((place) => place !== undefined);
  if (file === undefined) throw invalidArgument(sentence("The image wasn't found in this workspace."));
  const { size } = await stat(file);
  if (size > MAX_BYTES) throw invalidArgument(sentence("The image is larger than 2 MB."));
  const bytes = await readFile(file);
  const start = bytes.toString("latin1", 0, 12);
  const type = TYPES.find(([, expression]) => expression.test(start))?.[0];
  if (type === undefined) throw invalidArgument(sentence("The image is neither PNG, JPEG, GIF nor WebP."));
  return `data:${type};base64,${bytes.toString("base64")}`;
}

/** The real path of a file in the folder. The names are compared first, because only looking may reach another computer. */
async function realFile(folder: string, file: string): Promise<string | undefined> {
  if (!isInside(folder, file)) return undefined;
  try {
    const [realFolder, real, facts] = await Promise.all([realpath(folder), realpath(file), stat(file)]);
    return facts.isFile() && isInside(realFolder, real) ? real : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a path is inside a folder, judged by the names alone. */
export function isInside(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== "" && !/^\.\.(?:[\\/]|$)/.test(path) && !isAbsolute(path);
}
