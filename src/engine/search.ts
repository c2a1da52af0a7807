import { findExpression } from "./find-text.ts";
import { head } from "./fork/excerpt.ts";
import type { Message, Part, ToolPart } from "./server-model.ts";

/** A line of a conversation that contains the text searched for. */
export interface Hit {
  /** The ID of the message's part, or of an error, as in the output panel. */
  readonly entryID: string;
  /** How many matches the entry has before this one. */
  readonly nth: number;
  /** The line, or a part of it that begins shortly before the match. */
  readonly line: string;
}

/** Characters of a tool call's texts that the output panel shows; the rest can't be found there. */
export const SHOWN_LENGTH = 20_000;
/** The most hits in one conversation. */
const MAX_HITS = 20;
const LINE_LENGTH = 200;
/** Characters of a long line before the match. */
const BEFORE = 40;

/** The lines that contain the text, the newest first, at most one for each line. */
export function findHits(messages: readonly Message[], query: string): readonly Hit[] {
  const expression = findExpression(query);
  if (!expression) return [];
  let hits: readonly Hit[] = [];
  for (const message of messages.toReversed())
    for (const { entryID, texts } of entriesOf(message).toReversed()) {
      hits = [...hits, ...hitsIn(entryID, texts, expression).reverse()];
      if (hits.length >= MAX_HITS) return hits.slice(0, MAX_HITS);
    }
  return hits;
}

interface SearchedEntry {
  readonly entryID: string;
  readonly texts: readonly string[];
}

function entriesOf({ info, parts }: Message): readonly SearchedEntry[] {
  const entries = parts.map((part) => ({ entryID: part.id, texts: textsOf(part) }));
  const error = info.role === "assistant" ? info.error?.message : undefined;
  return error === undefined ? entries : [...entries, { entryID: `${info.id}/error`, texts: [error] }];
}

/** What users can read of a part. */
function textsOf(part: Part): readonly string[] {
  switch (part.type) {
    case "text":
      return part.synthetic ? [] : [part.text];
    case "reasoning":
      return [part.text];
    case "tool":
      return toolTexts(part);
    case "file":
      return [part.filename ?? part.mime];
    case "other":
      return [];
  }
}

function toolTexts({ tool, state }: ToolPart): readonly string[] {
  const title = "title" in state ? [state.title ?? ""] : [];
  const input = Object.entries(state.input).flatMap(([name, value]) => [
    name,
    typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? ""),
  ]);
  const output = state.status === "completed" ? state.output : state.status === "error" ? state.error : "";
  return [tool, ...title, ...input, output].map((text) => head(text, SHOWN_LENGTH));
}

function hitsIn(entryID: string, texts: readonly string[], expression: RegExp): Hit[] {
  const hits: Hit[] = [];
  let nth = 0;
  for (const text of texts) {
    let end = 0;
    for (const { index } of text.matchAll(expression)) {
      if (index >= end) {
        const start = text.lastIndexOf("\n", index) + 1;
        const next = text.indexOf("\n", index);
        end = next === -1 ? text.length : next;
        hits.push({ entryID, nth, line: lineAt(text.slice(start, end), index - start) });
      }
      nth++;
    }
  }
  return hits;
}

function lineAt(line: string, match: number): string {
  const from = line.length > LINE_LENGTH ? Math.max(0, match - BEFORE) : 0;
  return `${from > 0 ? "…" : ""}${head(line.slice(from), LINE_LENGTH)}`.trim();
}
