import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { Folder } from "./folder.ts";
import type { Folders } from "./folders.ts";

/** The current folder. Throws a {@link Refusal} where there is none. */
export function requireFolder({ current }: Pick<Folders, "current">): Folder {
  if (current) return current;
  throw new Refusal("unavailable", vscode.l10n.t("Background agents work on a folder; open one first."));
}
