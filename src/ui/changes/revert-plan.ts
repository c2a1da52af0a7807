import { Buffer } from "node:buffer";
import type { FileChange } from "../../engine/server-model.ts";
import type { FolderCalls } from "../../rpc/contract.ts";

/** The current state of a file. */
export type Present =
  | { readonly kind: "file"; readonly bytes: Uint8Array; readonly isUnsaved: boolean }
  | { readonly kind: "absent" }
  /** Not in the workspace, or reached through a link. */
  | { readonly kind: "outside" }
  /** Not a regular file, or not readable. */
  | { readonly kind: "unreadable" };

/** Why a change isn't reverted. The values are stable, as programs may depend on them. */
export type RefusalReason =
  /** The task or one of its subtasks is still running. */
  | "at-work"
  /** Another running task has changed the file. */
  | "worked-on"
  | "outside"
  | "unsaved"
  | "unreadable"
  /** The previous content isn't fully known. */
  | "no-snapshot"
  | "binary"
  /** The previous content wasn't UTF-8, so its text is incomplete. */
  | "encoding"
  /** It is unclear who changed the file. */
  | "doubtful"
  /** Someone else also changed the file between the two sides of the change. */
  | "mixed"
  /** Someone changed the file after the task, and the changes can't be separated. */
  | "changed-since";

/** What reverting a change does to the file. */
export type RevertPlan =
  /** `isMerged`: later changes by others are kept. */
  | { readonly kind: "write"; readonly bytes: Uint8Array; readonly isMerged: boolean }
  /** The task created the file. */
  | { readonly kind: "delete" }
  /** Nothing of the change is left. */
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly reason: RefusalReason };

export type TakeBack = FolderCalls["takeBack"];

/** Plans the revert of one file. A plan never loses what anyone else did to the file. */
export async function planRevert(
  change: FileChange,
  present: Present,
  isTaskRunning: boolean,
  takeBack: TakeBack,
): Promise<RevertPlan> {
  const { before, after } = change;
  if (present.kind === "outside" || present.kind === "unreadable") return refused(present.kind);
  if (await isReverted(change, present, takeBack)) return { kind: "nothing" };
  if (isTaskRunning) return refused("at-work");
  if (change.workedOnBy.length > 0) return refused("worked-on");
  if (present.kind === "file" && present.isUnsaved) return refused("unsaved");
  if (before.kind === "binary" || after.kind === "binary") return refused("binary");
  if (!isWhole(before) || !isWhole(after)) return refused("no-snapshot");
  if (change.isDoubtful) return refused("doubtful");
  if (change.isMixed) return refused("mixed");
  if (before.kind === "text" && !isIntact(before.text)) return refused("encoding");
  if (present.kind === "absent" || after.kind === "absent")
    return before.kind === "text" && after.kind === "absent" && present.kind === "absent"
      ? { kind: "write", bytes: Buffer.from(before.text), isMerged: false }
      : refused("changed-since");
  const isAsLeft = Buffer.from(after.text).equals(present.bytes);
  if (before.kind === "absent") return isAsLeft ? { kind: "delete" } : refused("changed-since");
  if (isAsLeft) return { kind: "write", bytes: Buffer.from(before.text), isMerged: false };
  const text = textOf(present.bytes);
  const merged = text === undefined ? undefined : await takeBack(before.text, after.text, text);
  if (merged === undefined) return refused("changed-since");
  return { kind: "write", bytes: Buffer.from(merged), isMerged: true };
}

function refused(reason: RefusalReason): RevertPlan {
  return { kind: "refused", reason };
}

/** Whether nothing of the change is left, regardless of later changes in other places. */
export async function isReverted(
  { before, after }: FileChange,
  present: Present,
  takeBack: TakeBack,
): Promise<boolean> {
  if (present.kind === "absent") return before.kind === "absent";
  if (present.kind !== "file" || before.kind !== "text") return false;
  if (Buffer.from(before.text).equals(present.bytes)) return true;
  if (after.kind !== "text" || Buffer.from(after.text).equals(present.bytes)) return false;
  const text = textOf(present.bytes);
  return (
    text !== undefined &&
    (await takeBack(before.text, after.text, text)) === undefined &&
    (await takeBack(after.text, before.text, text)) !== undefined
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

/** Undefined if the bytes aren't UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
