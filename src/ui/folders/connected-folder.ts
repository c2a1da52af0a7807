import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";
import { requireFolder } from "./require-folder.ts";

/**
 * The folder, by default the current one, once it is connected; the view shows progress. Rejects where there is none, or
 * it cannot be connected.
 */
export async function connectedFolder(folders: Folders, wanted?: Folder): Promise<Folder> {
  await folders.opened;
  const folder = wanted ?? requireFolder(folders);
  await folder.connector.ensureConnected();
  return folder;
}
