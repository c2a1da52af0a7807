import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";

/** A title that says which folder it is about, where there are several. */
export function folderTitle(folders: Folders, { name }: Folder, title: string): string {
  return folders.all.length > 1 ? `${title} — ${name}` : title;
}
