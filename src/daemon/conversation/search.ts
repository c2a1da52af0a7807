import type { TaskEngine } from "../../engine/engine.ts";
import { findExpression } from "../../engine/find-text.ts";
import { head, oneLine } from "../../engine/fork/excerpt.ts";
import type { Message } from "../../engine/server-model.ts";
import type { ConversationEntry, Hit } from "../../protocol/output.ts";
import { plainTerminalText } from "../../protocol/terminal-text.ts";
import { entriesOf } from "./entries.ts";
import { findTool, shownTexts, toToolDetail } from "./tool-model.ts";

/** The most hits in one conversation. */
const MAX_HITS = 20;
const LINE_LENGTH = 200;
/** Characters of a long line before the match. */
const BEFORE = 40;

/**
 * The lines with a text in the conversation of a task or subagent. Holds one conversation at a time.
 * @param folder where the agent works
 */
export async function search(
  engine: Pick<TaskEngine, "transcript">,
  id: string,
  query: string,
  folder: string,
): Promise<readonly Hit[]> {
  const transcript = await engine.transcript(id);
  try {
    return findHits(transcript.messages, query, folder);
  } finally {
    transcript.dispose();
  }
}

/** The lines that contain the text, as the panel shows them, the newest first, at most one hit for each line. */
export function findHits(messages: readonly Message[], query: string, folder?: string): readonly Hit[] {
  const expression = findExpression(query);
  if (!expression) return [];
  let hits: readonly Hit[] = [];
  for (const message of messages.toReversed())
    for (const entry of entriesOf(message, {
      ownSince: 0,
      promptMessageID: undefined,
      folder,
    }).toReversed()) {
      hits = [...hits, ...hitsIn(entry, textsOf(entry, message, folder), expression).reverse()];
      if (hits.length >= MAX_HITS) return hits.slice(0, MAX_HITS);
    }
  return hits;
}

/** The texts of an entry that can be found in the panel, in its order. */
function textsOf(entry: ConversationEntry, message: Message, folder: string | undefined): readonly string[] {
  switch (entry.kind) {
    case "text":
    case "prompt":
    case "reasoning":
      return [plainTerminalText(entry.text)];
    case "tool": {
      const call = findTool([message], entry.id);
      return [entry.tool, entry.title ?? "", ...(call ? shownTexts(toToolDetail(call, folder)) : [])];
    }
    case "file":
      return [entry.name];
    case "error":
      return entry.interrupted ? [] : [entry.message];
    case "compaction":
      return [];
  }
}

function hitsIn(entry: ConversationEntry, texts: readonly string[], expression: RegExp): Hit[] {
  const { id: entryID } = entry;
  const hits: Hit[] = [];
  let nth = 0;
  for (const [at, text] of texts.entries()) {
    // Most titles of calls repeat a field of the details.
    const isTitle = entry.kind === "tool" && at === 1;
    let end = 0;
    for (const { index } of text.matchAll(expression)) {
      if (index >= end && !(isTitle && repeats(texts.slice(at + 1), text))) {
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

function repeats(texts: readonly string[], title: string): boolean {
  return texts.some((text) => oneLine(text).includes(title));
}

function lineAt(line: string, match: number): string {
  const from = line.length > LINE_LENGTH ? Math.max(0, match - BEFORE) : 0;
  return `${from > 0 ? "…" : ""}${head(line.slice(from), LINE_LENGTH)}`.trim();
}
