import type { AttachedFile, ToolPart, ToolState } from "../server-model.ts";
import { head } from "./excerpt.ts";

const NOTE = /\n\[Shortened: the first \d{1,15} of (\d{1,15}) characters\]$/;
const LONGEST_NOTE = 90;

/** What a call returned: its output or its error. Undefined if it has not ended. */
export function resultOf(state: ToolState): string | undefined {
  switch (state.status) {
    case "completed":
      return state.output;
    case "error":
      return state.error;
    default:
      return undefined;
  }
}

/** The files that a call returned. */
export function attachmentsOf(state: ToolState): readonly AttachedFile[] {
  return (state.status === "completed" ? state.attachments : undefined) ?? [];
}

export interface ShortenedCall {
  readonly part: ToolPart;
  /** In UTF-16 units. */
  readonly originalChars: number;
}

/**
 * Shortens the result of a call to its first `maxChars` characters (UTF-16 units), followed by a line with its original
 * length. Undefined if the result is short enough or was already shortened to `maxChars`. A result shortened less is
 * shortened again, and the line keeps the first length.
 */
export function shortenResult(part: ToolPart, maxChars: number): ShortenedCall | undefined {
  const result = resultOf(part.state);
  if (result === undefined || result.length <= maxChars) return undefined;
  const note = NOTE.exec(result.slice(-LONGEST_NOTE));
  const rest = note ? result.slice(0, -note[0].length) : result;
  if (note && rest.length <= maxChars) return undefined;
  const originalChars = note ? Number(note[1]) : result.length;
  const kept = head(rest, maxChars);
  const text = `${kept}\n[Shortened: the first ${kept.length} of ${originalChars} characters]`;
  return { part: { ...part, state: withResult(part.state, text) }, originalChars };
}

function withResult(state: ToolState, text: string): ToolState {
  switch (state.status) {
    case "completed":
      return { ...state, output: text };
    case "error":
      return { ...state, error: text };
    default:
      return state;
  }
}
