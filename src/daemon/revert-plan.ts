import type { TaskEngine } from "../engine/engine.ts";
import { sentence, type Sentence } from "../engine/sentence.ts";
import type { FileChange, FileContent } from "../engine/server-model.ts";
import { isRunning } from "../engine/subagent.ts";
import type { FoundFile, PresentText, RefusalReason, RevertPlan } from "../rpc/revert-plan.ts";
import { takeBack } from "./take-back.ts";

/** In Git's words. */
const EXECUTABLE = "100755";
const LINK = "120000";

const LFS_POINTER = /^version https:\/\/git-lfs\.github\.com\/spec\//;
/** The byte order mark, with which a text in UTF-8 may begin. */
const MARK = "\u{feff}";
const UNKNOWN: FileContent = { kind: "unknown" };

/**
 * Plans the revert of one file that a task changed. A plan never loses what anyone else did to the file.
 * @param formerMode the mode that Git knows of the missing file at a path
 * @param checkedOut a text of the file that Git has stored, as it is on the disk
 */
export async function planRevert(
  engine: Pick<TaskEngine, "child" | "session" | "descendantsOf">,
  taskID: string,
  change: FileChange,
  { name, present }: FoundFile,
  {
    formerMode,
    checkedOut,
  }: {
    readonly formerMode: (path: string) => Promise<string | undefined>;
    readonly checkedOut: (path: string, text: string) => Promise<FileContent>;
  },
): Promise<RevertPlan> {
  const family = [taskID, ...engine.descendantsOf(taskID).map(({ id }) => id)];
  const isTaskRunning = family.flatMap((id) => engine.child(id) ?? []).some(isRunning);
  const stored = planOf(change, present, isTaskRunning);
  const isCertain = typeof stored === "string" && stored !== "changed-since";
  const plan = isCertain ? stored : planOf(await onDisk(change, present, checkedOut), present, isTaskRunning);
  if (typeof plan !== "string") {
    if (plan.kind !== "write" || present.kind !== "absent") return plan;
    const mode = await formerMode(change.path);
    if (mode === LINK) return { kind: "refused", reason: "outside", why: explain("outside", name, []) };
    return mode === EXECUTABLE ? { ...plan, mode: 0o777 & ~process.umask() } : plan;
  }
  const workers = change.workedOnBy.map(
    (id) => engine.child(id)?.description ?? engine.session(id)?.title ?? id,
  );
  return { kind: "refused", reason: plan, why: explain(plan, name, workers) };
}

/**
 * The change with the contents that the file has on the disk. Snapshots have what Git stores: no byte order mark, the
 * pointers of Git LFS, and at first line feeds alone where Git checks out others.
 */
async function onDisk(
  change: FileChange,
  present: PresentText,
  checkedOut: (path: string, text: string) => Promise<FileContent>,
): Promise<FileChange> {
  const { path, before, after } = change;
  const text = present.kind === "file" ? (present.text ?? "") : "";
  // Then the line endings are the change.
  const areAlike = before.kind === "text" && after.kind === "text" && withFeeds(after.text) === before.text;
  const formed = async (content: FileContent): Promise<FileContent> => {
    if (content.kind !== "text") return content;
    if (LFS_POINTER.test(content.text)) {
      const found = present.kind === "absent" ? await checkedOut(path, content.text) : UNKNOWN;
      return found.kind === "text" && LFS_POINTER.test(found.text) ? UNKNOWN : found;
    }
    const hasOthers = text.includes("\r\n") && !content.text.includes("\r\n") && !areAlike;
    const found = hasOthers ? await checkedOut(path, content.text) : content;
    const lacksMark = text.startsWith(MARK) && found.kind === "text" && !found.text.startsWith(MARK);
    return lacksMark ? { kind: "text", text: MARK + found.text } : found;
  };
  return { ...change, before: await formed(before), after: await formed(after) };
}

function withFeeds(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

/** The plan, or why the change isn't reverted. */
export function planOf(
  change: FileChange,
  present: PresentText,
  isTaskRunning: boolean,
): Exclude<RevertPlan, { readonly kind: "refused" }> | RefusalReason {
  const { before, after } = change;
  if (present.kind === "outside" || present.kind === "unreadable") return present.kind;
  if (isReverted(change, present)) return { kind: "nothing" };
  if (isTaskRunning) return "at-work";
  if (change.workedOnBy.length > 0) return "worked-on";
  if (present.kind === "file" && present.isUnsaved) return "unsaved";
  if (before.kind === "binary" || after.kind === "binary") return "binary";
  if (!isWhole(before) || !isWhole(after)) return "no-snapshot";
  if (change.isDoubtful) return "doubtful";
  if (change.isMixed) return "mixed";
  if (before.kind === "text" && !isIntact(before.text)) return "encoding";
  if (present.kind === "absent" || after.kind === "absent")
    return before.kind === "text" && after.kind === "absent" && present.kind === "absent"
      ? { kind: "write", text: before.text, isMerged: false }
      : "changed-since";
  const isAsLeft = after.text === present.text;
  if (before.kind === "absent") return isAsLeft ? { kind: "delete" } : "changed-since";
  if (isAsLeft) return { kind: "write", text: before.text, isMerged: false };
  const merged = present.text === undefined ? undefined : takeBack(before.text, after.text, present.text);
  return merged === undefined ? "changed-since" : { kind: "write", text: merged, isMerged: true };
}

/** Whether nothing of the change is left, regardless of later changes in other places. */
function isReverted({ before, after }: FileChange, present: PresentText): boolean {
  if (present.kind === "absent") return before.kind === "absent";
  if (present.kind !== "file" || before.kind !== "text") return false;
  const { text } = present;
  if (before.text === text) return true;
  if (text === undefined || after.kind !== "text" || after.text === text) return false;
  return (
    takeBack(before.text, after.text, text) === undefined &&
    takeBack(after.text, before.text, text) !== undefined
  );
}

function isWhole<T extends { readonly kind: string }>(
  content: T,
): content is Extract<T, { readonly kind: "text" | "absent" }> {
  return content.kind === "text" || content.kind === "absent";
}

/** Bytes that weren't UTF-8 have become U+FFFD by the time the text arrives here. */
function isIntact(text: string): boolean {
  return !text.includes("\u{fffd}");
}

/** @param workers the running tasks that changed the file as well */
function explain(reason: RefusalReason, file: string, workers: readonly string[]): Sentence {
  switch (reason) {
    case "at-work":
      return sentence("{0}: the task is still running. Wait until it finishes, or cancel it first.", file);
    case "worked-on":
      return sentence(
        '{0}: also changed by "{1}", which is still running. Wait until it finishes, or cancel it first.',
        file,
        workers.join(`", "`),
      );
    case "outside":
      return sentence("{0}: outside this workspace, or reached through a link.", file);
    case "unsaved":
      return sentence("{0}: has unsaved changes in an editor. Save or discard them first.", file);
    case "unreadable":
      return sentence("{0}: can't be read as a file.", file);
    case "no-snapshot":
      return sentence(
        "{0}: its previous content isn't fully known because OpenCode took no snapshot of it.",
        file,
      );
    case "binary":
      return sentence("{0}: a binary file whose previous content isn't available.", file);
    case "encoding":
      return sentence("{0}: not written in UTF-8, so its previous text isn't known exactly.", file);
    case "doubtful":
      return sentence(
        "{0}: other agents ran commands at the same time, so the change may be theirs. Compare and revert by hand.",
        file,
      );
    case "mixed":
      return sentence(
        "{0}: also changed by something else while the task was running, which would be lost. Compare and revert by hand.",
        file,
      );
    case "changed-since":
      return sentence("{0}: has since changed in the same places. Compare and revert by hand.", file);
  }
}
