import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";

/** The current folder. Throws a {@link Refusal} if there is none. */
export function requireFolder({ current }: Pick<Folders, "current">): Folder {
  if (current) return current;
  throw new Refusal("unavailable", sentence("Open a folder first; background agents work in a folder."));
}

/** The error for a prompt whose folder was removed from the workspace. */
export function folderGone(): Refusal {
  return new Refusal(
    "unavailable",
    sentence(
      "The folder of this prompt is no longer in the workspace. Add the folder again, or copy the prompt.",
    ),
  );
}

/**
 * Connects a folder, by default the current one, while the view shows progress. Rejects if there is no folder, if it
 * was removed from the workspace, or if connecting fails.
 */
export async function connectedFolder(folders: Folders, wanted?: Folder): Promise<Folder> {
  await folders.opened;
  const folder = wanted ?? requireFolder(folders);
  if (!folders.all.includes(folder)) throw folderGone();
  await folder.connector.ensureConnected();
  return folder;
}

/** Adds the folder's name to a title if there are several folders. */
export function folderTitle(folders: Folders, { name }: Folder, title: string): string {
  return folders.all.length > 1 ? `${title} — ${name}` : title;
}
