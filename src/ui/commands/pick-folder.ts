import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Folder } from "../folders/folder.ts";
import type { Folders } from "../folders/folders.ts";
import { withoutIcons } from "../plain-text.ts";
import { BACK, askChoice } from "../quick-input.ts";

/** Asks for one of the workspace's folders. Undefined: it is to stay as it is. */
export async function pickFolder(folders: Folders, active: Folder): Promise<Folder | undefined> {
  const picked = await askChoice({
    title: vscode.l10n.t("Launch Task: Folder"),
    canGoBack: true,
    placeholder: vscode.l10n.t("In which folder is the agent to work?"),
    choices: folders.all.map((folder) => ({
      label: withoutIcons(folder.name),
      description: withoutIcons(folder.uri.fsPath),
      value: folder,
    })),
    active,
  });
  return picked === BACK ? undefined : picked;
}

/** The folder that a program names: by its path, its address or its name in the workspace. Throws a {@link Refusal}. */
export function folderNamed(folders: Folders, wanted: string): Folder {
  const found = folders.all.filter(({ uri, name }) =>
    [uri.fsPath, uri.toString(), name].includes(wanted.trim()),
  );
  const [folder, ...others] = found;
  if (folder && others.length === 0) return folder;
  const paths = (found.length > 0 ? found : folders.all).map(({ uri }) => uri.fsPath).join(", ");
  throw new Refusal(
    "invalid-argument",
    folder
      ? sentence("Several folders are called “{0}”; give the path of one: {1}.", wanted, paths)
      : sentence("There is no folder “{0}” in the workspace; there are: {1}.", wanted, paths || "—"),
  );
}
