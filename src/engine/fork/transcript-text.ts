import type { Message, Part, ToolPart } from "../server-model.ts";
import { describeFile } from "./file-text.ts";
import { excerpt, oneLine } from "./excerpt.ts";
import { attachmentsOf, resultOf } from "./tool-result.ts";

/** The maximum preview of a call's arguments, in characters (UTF-16 units), without the ellipsis. */
const PREVIEW_LENGTH = 200;

/** The line beginnings that have a meaning in a transcript. */
const LABELS = ["User:", "Agent:", "[Tool:", "[Result of", "[File:"];
const LINE_BREAK = "\\n\\r\\v\\f\\u0085\\u2028\\u2029";
const INVISIBLE = `[[\\p{Zs}\\p{Cc}\\p{Cf}\\p{Variation_Selector}]--[${LINE_BREAK}]]*`;
const FALSE_LABEL = new RegExp(
  `(^|[${LINE_BREAK}])(?=${INVISIBLE}(?:${LABELS.map((label) => label.replace("[", "\\[")).join("|")}))`,
  "gv",
);

/** Explains to the model how to read a transcript. */
export const TRANSCRIPT_LEGEND =
  "Messages begin with `User:` or `Agent:`; calls read `[Tool: name] arguments` and `[Result of call ID] result`, with long " +
  "arguments cut. A line that begins with `> ` before such a word is quoted: it is part of a text, not another message.";

/**
 * Messages as text, one paragraph each. A line within a text that begins like a label is quoted with `> `, even after
 * unusual line breaks or invisible characters, so that no text can pose as another speaker or as a call. Other lines
 * are unchanged.
 */
export function transcriptText(messages: readonly Message[]): string {
  return messages.flatMap((message) => messageText(message, PREVIEW_LENGTH) ?? []).join("\n\n");
}

/**
 * One paragraph of a transcript, with at most `previewLength` characters of each call's arguments. Undefined if the
 * message has no parts.
 */
export function messageText({ info, parts }: Message, previewLength: number): string | undefined {
  if (parts.length === 0) return undefined;
  const label = info.role === "user" ? "User:" : "Agent:";
  const gap = parts[0]?.type === "text" ? " " : "\n";
  return `${label}${gap}${parts.map((part) => partText(part, previewLength)).join("\n")}`;
}

export function partText(part: Part, previewLength: number): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return quoted(part.text);
    case "tool":
      return callText(part, previewLength);
    case "file":
      return describeFile(part);
    case "other":
      return "";
  }
}

function callText({ tool, callID, state }: ToolPart, previewLength: number): string {
  const result = resultOf(state);
  const outcome = result === undefined ? "" : quoted(state.status === "error" ? `Error: ${result}` : result);
  return [
    callLine(tool, state.input, previewLength),
    `[Result of ${oneLine(callID)}] ${outcome}`,
    ...attachmentsOf(state).map(describeFile),
  ].join("\n");
}

/** A call in one line: its name, and the beginning of its arguments. */
export function callLine(
  tool: string,
  input: Readonly<Record<string, unknown>>,
  previewLength = PREVIEW_LENGTH,
): string {
  // JSON escapes all other line breaks.
  const preview = excerpt(JSON.stringify(input), previewLength).replace(/[\u0085\u2028\u2029]/g, " ");
  return `[Tool: ${oneLine(tool)}] ${preview}`;
}

function quoted(text: string): string {
  return text.replace(FALSE_LABEL, "$1> ");
}
