import type { ChangedFile, ChangeKind } from "../engine/bring-back.ts";
import { git, parts } from "./git.ts";

/** The files that differ between two trees or commits, sorted by path. */
export async function changedFiles(
  directory: string,
  before: string,
  after: string,
  {
    renames = true,
    signal,
  }: {
    readonly renames?: boolean;
    readonly signal?: AbortSignal | undefined;
  } = {},
): Promise<ChangedFile[]> {
  const options = ["-r", "-z", "--raw", "--numstat", "--no-ext-diff", "--no-textconv"];
  const detection = renames ? ["-M", "-l1000"] : ["--no-renames"];
  const output = parts(
    await git(directory, ["diff-tree", ...options, ...detection, before, after, "--"], { signal }),
  );
  const kinds = new Map<string, Pick<ChangedFile, "kind" | "from">>();
  const files: ChangedFile[] = [];
  for (let at = 0; at < output.length;) {
    const entry = output[at++] ?? "";
    if (entry.startsWith(":")) {
      const [oldMode = "", newMode = "", oldBlob, newBlob, status = ""] = entry.slice(1).split(" ");
      const first = output[at++] ?? "";
      if (status.startsWith("R")) kinds.set(output[at++] ?? "", { kind: "renamed", from: first });
      else kinds.set(first, { kind: kindOf(status, oldBlob === newBlob && oldMode !== newMode) });
      continue;
    }
    const [added = "", removed = "", ...names] = entry.split("\t");
    // The name may contain tabs. A renamed file has an empty one here; both names follow.
    const name = names.join("\t");
    const path = name === "" ? (output[at + 1] ?? "") : name;
    if (name === "") at += 2;
    const kind = kinds.get(path);
    if (kind)
      files.push({
        path,
        ...kind,
        added: Number(added) || 0,
        removed: Number(removed) || 0,
        isBinary: added === "-",
      });
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function kindOf(status: string, isModeOnly: boolean): ChangeKind {
  if (status === "A") return "added";
  if (status === "D") return "deleted";
  return isModeOnly ? "mode" : "modified";
}

/** The folders in which a path lies, the outermost first. */
export function foldersOf(path: string): readonly string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

/** Names some of the paths in a sentence. */
export function namesOf(paths: readonly string[]): string {
  const shown = paths.slice(0, 5);
  return paths.length > shown.length ? `${shown.join(", ")}, …` : shown.join(", ");
}
