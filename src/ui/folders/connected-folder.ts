import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";
import { folderGone, requireFolder } from "./require-folder.ts";

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
