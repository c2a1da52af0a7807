import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";

/** The current folder. Throws a {@link Refusal} where there is none. */
export function requireFolder({ current }: Pick<Folders, "current">): Folder {
  if (current) return current;
  throw new Refusal("unavailable", sentence("Background agents work on a folder; open one first."));
}

/** What is said where something was begun for a folder that was taken out of the workspace since. */
export function folderGone(): Refusal {
  return new Refusal(
    "unavailable",
    sentence(
      "The folder that this prompt is for is no longer in the workspace. Add it again, or copy the text into another launch.",
    ),
  );
}
