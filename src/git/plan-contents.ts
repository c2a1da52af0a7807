import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BringBackPlan, FileMode, PlannedFile, Version } from "../engine/bring-back.ts";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { git, gitForPaths, gitText, parts } from "./git.ts";

/** Which state of a file: of the folder, of the worktree, merged, or merged with labelled conflict markers. */
export type Which = "mine" | "agents" | "merged" | "markers";

/** A file as it would be in the folder. */
export interface FileContent {
  /** Undefined if there is no such file. For a symbolic link, its target. */
  readonly bytes: Buffer | undefined;
  readonly mode: FileMode;
}

/** How conflict markers name the two sides. */
export interface Labels {
  readonly mine: string;
  readonly agents: string;
}

const LABELS: Labels = { mine: "Your changes", agents: "Changes by the agent" };

/**
 * Matches the line with which a conflict begins; Git adds the path of a file that has another one on this side. How long
 * its mark is can be set for each file.
 * @param commit by which a merge that was just made names the folder's side
 */
export function conflictStart(commit?: string): string {
  const side = commit === undefined ? LABELS.mine : `(${LABELS.mine}|${commit})`;
  return `^<+ ${side}(:.*)?\r?$`;
}

/** The Git modes of the files that can be written. */
const MODES: Readonly<Record<string, FileMode>> = {
  "100644": "file",
  "100755": "executable",
  "120000": "symlink",
};

interface GitFile {
  readonly mode: FileMode;
  readonly blob: string;
}

/** A file of the plan as Git would check it out in the folder. */
export async function contents(
  plan: BringBackPlan,
  path: string,
  which: Which,
  { labels = LABELS, signal }: { readonly labels?: Labels; readonly signal?: AbortSignal | undefined } = {},
): Promise<FileContent> {
  const version = await versionOf(plan, path, which, signal);
  const entry = knownEntry(version);
  // A name that isn't UTF-8 can't be found by its text, and would be created under another name.
  if ((version && !entry) || path.includes("\u{fffd}")) throw notWritable(path);
  if (!entry) return { bytes: undefined, mode: "file" };
  const { mode } = entry;
  if (mode === "symlink" || which !== "markers")
    return { mode, bytes: await checkedOut(plan, path, entry, signal) };
  const text = (await rawBytes(plan, entry, signal)).toString("latin1");
  const labelled = text
    .replaceAll(plan.commits.mine, latin1(labels.mine))
    .replaceAll(plan.commits.agents, latin1(labels.agents));
  return { mode, bytes: await checkedOutText(plan, path, { mode, text: labelled }, signal) };
}

/** What to write to take a state of a planned file, by path: nothing for the folder's own. */
export async function changesOf(
  plan: BringBackPlan,
  { path, from, kind, conflict }: PlannedFile,
  which: Which,
  options: { readonly labels?: Labels; readonly signal?: AbortSignal | undefined } = {},
): Promise<ReadonlyMap<string, FileContent>> {
  if (which === "mine") return new Map();
  const paths = from === undefined ? [path] : [from, path];
  const files = await Promise.all(paths.map((one) => contents(plan, one, which, options)));
  if (!conflict && kind !== "deleted" && !files.at(-1)?.bytes) throw notWritable(path);
  return new Map(paths.map((one, index) => [one, files[index] as FileContent]));
}

function notWritable(path: string): UserFacingError {
  return new UserFacingError(
    sentence(
      "{0} can't be brought back because it is a repository of its own, or because of its name, so nothing was written. Copy it yourself, and bring back the other files only.",
      path,
    ),
  );
}

async function versionOf(
  plan: BringBackPlan,
  path: string,
  which: Which,
  signal: AbortSignal | undefined,
): Promise<Version | undefined> {
  const versions = plan.files.find((file) => file.path === path)?.versions;
  if (versions && (which === "mine" || which === "agents")) return versions[which];
  const tree = which === "markers" ? plan.merged : plan[which];
  return (await versionsIn(plan.root, tree, [path], signal)).get(path);
}

/** What a tree has at these paths. */
export async function versionsIn(
  root: string,
  tree: string,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, Version>> {
  const listed = parts(await gitForPaths(root, ["ls-tree", "-z", "--full-tree", tree], paths, { signal }));
  return new Map(
    listed.flatMap((line) => {
      const [, mode, blob, path] = /^(\d+) (?:blob|commit) ([0-9a-f]+)\t([^]*)$/.exec(line) ?? [];
      return mode && blob && path ? [[path, { mode, blob }]] : [];
    }),
  );
}

function knownEntry(version: Version | undefined): GitFile | undefined {
  const mode = version && MODES[version.mode];
  return mode && { mode, blob: version.blob };
}

function store({ root }: BringBackPlan, text: string, signal: AbortSignal | undefined): Promise<string> {
  return gitText(root, ["hash-object", "-w", "--stdin"], { signal, input: Buffer.from(text, "latin1") });
}

function rawBytes(
  { root }: BringBackPlan,
  { blob }: GitFile,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  return git(root, ["cat-file", "blob", blob], { signal });
}

async function checkedOutText(
  plan: BringBackPlan,
  path: string,
  { mode, text }: { readonly mode: FileMode; readonly text: string },
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  return checkedOut(plan, path, { mode, blob: await store(plan, text, signal) }, signal);
}

/** The bytes of a file with the folder's filters and line endings. */
async function checkedOut(
  plan: BringBackPlan,
  path: string,
  entry: GitFile,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  if (entry.mode === "symlink") return rawBytes(plan, entry, signal);
  const filtered = ({ blob }: GitFile): Promise<Buffer> =>
    git(plan.root, ["cat-file", "--filters", `--path=${path}`, blob], { signal });
  const [bytes, present] = await Promise.all([filtered(entry), onDisk(join(plan.root, path))]);
  const kept = present ? withLineEndingsOf(present, bytes) : bytes;
  if (!present || kept === bytes) return bytes;
  // A file can have other line endings than Git would check out, if Git stores both in the same way. Those lines did not
  // change, so they are not to be rewritten.
  const mine = knownEntry((await versionsIn(plan.root, plan.mine, [path], signal)).get(path));
  return mine && lineEndings(await filtered(mine)) === lineEndings(present) ? bytes : kept;
}

function withLineEndingsOf(present: Buffer, bytes: Buffer): Buffer {
  if (bytes.includes(0)) return bytes;
  const [now, then] = [lineEndings(present), lineEndings(bytes)];
  if (now === then || now === "mixed" || then === "mixed" || now === "none") return bytes;
  const text = bytes.toString("latin1");
  return Buffer.from(
    now === "crlf" ? text.replaceAll("\n", "\r\n") : text.replaceAll("\r\n", "\n"),
    "latin1",
  );
}

function lineEndings(bytes: Buffer): "none" | "lf" | "crlf" | "mixed" {
  const text = bytes.toString("latin1");
  const all = text.split("\n").length - 1;
  const withReturn = text.split("\r\n").length - 1;
  if (all === 0) return "none";
  return withReturn === 0 ? "lf" : withReturn === all ? "crlf" : "mixed";
}

/** Undefined if there is no regular file. */
async function onDisk(path: string): Promise<Buffer | undefined> {
  try {
    return (await lstat(path)).isFile() ? await readFile(path) : undefined;
  } catch {
    return undefined;
  }
}

/** A text that becomes UTF-8 when it is written as Latin-1. */
function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}
