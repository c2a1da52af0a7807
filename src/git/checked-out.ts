import { isAbsolute, join, relative, sep } from "node:path";
import type { FileContent } from "../engine/server-model.ts";
import { git, gitText } from "./git.ts";
import { findRepository } from "./repository.ts";

/** How long a filter may take, in milliseconds: that of Git LFS can have to download. */
const FILTER_MS = 30_000;

/**
 * A text that Git has stored, as Git would check it out: with the folder's line endings, and what filters such as those of
 * Git LFS make of it. Unknown if a filter fails; the text itself outside of a repository.
 * @param folder whose repository, settings and filters apply, also to its worktrees
 * @param directory the folder, or the same place in one of its worktrees
 * @param path absolute, in the directory
 */
export async function checkedOut(
  folder: string,
  directory: string,
  path: string,
  text: string,
): Promise<FileContent> {
  const below = relative(directory, path);
  const repository = await findRepository(folder).catch(() => undefined);
  if (!repository || below.startsWith("..") || isAbsolute(below)) return { kind: "text", text };
  const { root, prefix } = repository;
  const name = join(prefix, below).replaceAll(sep, "/");
  try {
    const blob = await gitText(root, ["hash-object", "-w", "--stdin"], { input: text });
    const signal = AbortSignal.timeout(FILTER_MS);
    return asText(await git(root, ["cat-file", "--filters", `--path=${name}`, blob], { signal }));
  } catch {
    return { kind: "unknown" };
  }
}

function asText(bytes: Buffer): FileContent {
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { kind: "binary" };
  }
}
