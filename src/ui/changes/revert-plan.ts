import { Buffer } from "node:buffer";
import { diffArrays } from "diff";
import type { FileChange } from "../../engine/server-model.ts";

/** What is at a file's place now. */
export type Present =
  | { readonly kind: "file"; readonly bytes: Uint8Array; readonly isUnsaved: boolean }
  | { readonly kind: "absent" }
  /** Not in the workspace, or reached by a link. */
  | { readonly kind: "outside" }
  /** Something else, or not readable. */
  | { readonly kind: "unreadable" };

/** Why a change is not taken back; stable words for programs. */
export type RefusalReason =
  /** The task has not ended, or what it launched has not. */
  | "at-work"
  /** Others at work have changed the file. */
  | "worked-on"
  | "outside"
  | "unsaved"
  | "unreadable"
  /** What the file was is not known whole. */
  | "no-snapshot"
  | "binary"
  /** Its bytes are no UTF-8, so the text is not all of it. */
  | "encoding"
  /** It cannot be told who changed it. */
  | "doubtful"
  /** Between its two sides somebody else changed it too. */
  | "mixed"
  /** Somebody changed it after the task in a way that cannot be told apart. */
  | "changed-since";

/** What taking back a change means for the file. */
export type RevertPlan =
  /** `isMerged`: changes that others made since stay. */
  | { readonly kind: "write"; readonly bytes: Uint8Array; readonly isMerged: boolean }
  /** The task created it. */
  | { readonly kind: "delete" }
  /** There is nothing left of the change. */
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly reason: RefusalReason };

/** Decides about one file. Nothing that somebody else did to it is ever lost by what is planned. */
export function planRevert(change: FileChange, present: Present, isTaskAtWork: boolean): RevertPlan {
  const { before, after } = change;
  if (present.kind === "outside" || present.kind === "unreadable") return refused(present.kind);
  if (isReverted(change, present)) return { kind: "nothing" };
  if (isTaskAtWork) return refused("at-work");
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
  const merged = text === undefined ? undefined : takeBack(before.text, after.text, text);
  if (merged === undefined) return refused("changed-since");
  return { kind: "write", bytes: Buffer.from(merged), isMerged: true };
}

function refused(reason: RefusalReason): RevertPlan {
  return { kind: "refused", reason };
}

/** Whether nothing of a change is left, whatever others did since in other places. */
export function isReverted({ before, after }: FileChange, present: Present): boolean {
  if (present.kind === "absent") return before.kind === "absent";
  if (present.kind !== "file" || before.kind !== "text") return false;
  if (Buffer.from(before.text).equals(present.bytes)) return true;
  if (after.kind !== "text" || Buffer.from(after.text).equals(present.bytes)) return false;
  const text = textOf(present.bytes);
  return (
    text !== undefined &&
    takeBack(before.text, after.text, text) === undefined &&
    takeBack(after.text, before.text, text) !== undefined
  );
}

function isWhole<T extends { readonly kind: string }>(
  content: T,
): content is Extract<T, { readonly kind: "text" | "absent" }> {
  return content.kind === "text" || content.kind === "absent";
}

/** What was no UTF-8 was replaced by U+FFFD on its way here. */
function isIntact(text: string): boolean {
  return !text.includes("\u{fffd}");
}

/** Undefined: it is no UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Lines that may differ between two texts before it is not worth the time to compare them. */
const MOST_DIFFERENCES = 1_000;

/** Lines `start` to `end` (exclusive) of a text, which became these. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
}

/**
 * What a text is without the change from `before` to `after`, where others changed it since to `present`. Undefined:
 * their changes touch it, or are too many.
 */
export function takeBack(before: string, after: string, present: string): string | undefined {
  const base = linesOf(after);
  const back = replacements(base, linesOf(before));
  const since = replacements(base, linesOf(present));
  if (!back || !since) return undefined;
  if (back.some((one) => since.some((other) => isTouching(one, other)))) return undefined;
  const all = [...back, ...since].sort((a, b) => a.start - b.start);
  const kept: string[] = [];
  let at = 0;
  for (const { start, end, lines } of all) {
    kept.push(...base.slice(at, start), ...lines);
    at = end;
  }
  return [...kept, ...base.slice(at)].join("");
}

/** With their ends, so that putting them together gives the text. */
function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** What has to be replaced in one text to make the other; undefined: too much. */
function replacements(from: string[], to: string[]): readonly Replacement[] | undefined {
  const changes = diffArrays(from, to, { maxEditLength: MOST_DIFFERENCES });
  if (!changes) return undefined;
  const found: Replacement[] = [];
  let at = 0;
  let open: Replacement | undefined;
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      if (open) found.push(open);
      open = undefined;
      at += value.length;
      continue;
    }
    open ??= { start: at, end: at, lines: [] };
    if (removed) open = { ...open, end: (at += value.length) };
    else open = { ...open, lines: [...open.lines, ...value] };
  }
  return open ? [...found, open] : found;
}

/** Places side by side touch as well: which of two insertions comes first would be a guess. */
function isTouching(one: Replacement, other: Replacement): boolean {
  return one.start <= other.end && other.start <= one.end;
}
