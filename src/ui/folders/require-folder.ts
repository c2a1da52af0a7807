import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";

/** The current folder. Throws a {@link Refusal} where there is none. */
export function requireFolder({ current }: Pick<Folders, "current">): Folder {
  if (current) return current;
  throw new Refusal("unavailable", sentence("Open a folder first; background agents work in a folder."));
}

/** What is said where something was begun for a folder that was taken out of the workspace since. */
export function folderGone(): Refusal {
  return new Refusal(
    "unavailable",
    sentence(
      "The folder of this prompt is no longer in the workspace. Add the folder again, or copy the prompt.",
    ),
  );
}

/**
 * The folder, by default the current one, once it is connected; the view shows progress. Rejects where there is none, it
 * was taken out of the workspace, or it cannot be connected.
 */
export async function connectedFolder(folders: Folders, wanted?: Folder): Promise<Folder> {
  await folders.opened;
  const folder = wanted ?? requireFolder(folders);
  if (!folders.all.includes(folder)) throw folderGone();
  await folder.connector.ensureConnected();
  return folder;
}

/** A title that says which folder it is about, where there are several. */
export function folderTitle(folders: Folders, { name }: Folder, title: string): string {
  return folders.all.length > 1 ? `${title} — ${name}` : title;
}
