import type { Message, Part } from "../server-model.ts";
import { isCut, type CutHistory, type ShortenedResult } from "./cut.ts";
import { amount, excerpt, head, oneLine } from "./excerpt.ts";
import { callLine } from "./transcript-text.ts";

/** The maximum length of a preamble, in characters. Its lists also have at most one character per inherited token. */
export const PREAMBLE_LENGTH = 6_000;
const TITLE_LENGTH = 100;
const OUTLINE_LENGTH = 120;

/** What a preamble mentions besides the cut. */
export interface ForkFacts {
  /** The title of the forked conversation. */
  readonly sourceTitle?: string | undefined;
  readonly carriesOn?: boolean | undefined;
}

/**
 * The first text that a fork reads: that the inherited messages are background, and what is missing, so that the fork
 * can look it up if needed. The preamble does not depend on how the messages are handed over.
 */
export function forkPreamble(cut: CutHistory, facts: ForkFacts = {}): string {
  const sections = [framing(cut, facts), ...(isCut(cut) ? [numbers(cut)] : [])];
  const lists = [
    list("Results shortened, the latest first:", cut.shortened, shortenedLine),
    list("Messages left out, the latest first:", cut.removed, outlineLine),
  ].filter(({ count }) => count > 0);
  let room = Math.min(PREAMBLE_LENGTH, cut.limits.maxTokens) - sections.join("\n\n").length;
  for (const [index, each] of lists.entries()) {
    const section = listed(each, Math.floor(room / (lists.length - index)));
    if (section === undefined) continue;
    room -= section.length;
    sections.push(section);
  }
  return sections.join("\n\n");
}

function framing({ source, messages }: CutHistory, { sourceTitle, carriesOn }: ForkFacts): string {
  if (carriesOn)
    return (
      "You are a background agent that works on its own. The messages so far are your own work, which stopped before " +
      "it was finished; files may have changed since. A call that is said to be in progress was interrupted then."
    );
  const title = excerpt(oneLine(sourceTitle ?? ""), TITLE_LENGTH);
  const origin = title === "" ? "another conversation" : `the conversation "${title}"`;
  return [
    "You are a background agent that works on its own.",
    messages.length === 0
      ? `You were forked from ${origin}, which was empty.`
      : `The messages inherited from ${origin} are background: they tell what was said and done before, and files may have changed since.`,
    "Your task is the last prompt alone; carry it out, and do not go on with other work of that conversation.",
    ...(source.openCalls > 0
      ? [
          `A call that is said to be in progress belongs to that conversation, which carries it on${source.hasLaunch ? " (one of them started you)" : ""}: do not repeat it.`,
        ]
      : []),
  ].join(" ");
}

function numbers({
  source,
  limits,
  removed,
  shortened,
  shortenedMessages,
  tokensBefore,
  tokensAfter,
}: CutHistory): string {
  const missing = [
    ...(removed.length > 0
      ? [`${amount(removed.length, "message")} of ${source.messages.length} left out`]
      : []),
    ...(shortened.length > 0
      ? [`${amount(shortened.length, "tool result")} shortened to ${limits.maxToolResultChars} characters`]
      : []),
    ...(shortenedMessages > 0 ? [`${amount(shortenedMessages, "message")} without the middle`] : []),
    ...(source.leftOutFiles > 0 ? [`${amount(source.leftOutFiles, "large file")} named only`] : []),
  ];
  return (
    `Not everything was inherited: ${missing.join(", ")} (about ${tokensAfter.tokens} of ${tokensBefore.tokens} tokens are here). ` +
    "Where you need what is missing, read it again: make the call once more, or look at the files."
  );
}

function shortenedLine({ tool, input, callID, originalChars }: ShortenedResult): string {
  return `- ${callLine(tool, input)} (${oneLine(callID)}: ${originalChars} characters)`;
}

/** Outlines a message in one line: the author, the beginning, and the tools used. */
function outlineLine({ info, parts }: Message): string {
  const text = parts.find((part) => part.type === "text" && part.text.trim() !== "");
  const beginning =
    text?.type === "text"
      ? excerpt(oneLine(head(text.text.trimStart(), 4 * OUTLINE_LENGTH)), OUTLINE_LENGTH)
      : "";
  const tools = toolCounts(parts);
  return ["-", info.role === "user" ? "User:" : "Agent:", beginning, tools && `[Tools: ${tools}]`]
    .filter((word) => word !== "")
    .join(" ");
}

function toolCounts(parts: readonly Part[]): string {
  const counts = new Map<string, number>();
  for (const part of parts) if (part.type === "tool") counts.set(part.tool, (counts.get(part.tool) ?? 0) + 1);
  const words = [...counts].map(([tool, count]) => oneLine(tool) + (count > 1 ? ` × ${count}` : ""));
  return excerpt(words.join(", "), OUTLINE_LENGTH);
}

interface List {
  readonly title: string;
  readonly count: number;
  /** Generated lazily, as most lines do not fit. */
  readonly lines: Iterable<string>;
}

/** The last item first. */
function list<T>(title: string, items: readonly T[], lineOf: (item: T) => string): List {
  function* lines(): Generator<string> {
    for (let index = items.length - 1; index >= 0; index--) yield lineOf(items[index] as T);
  }
  return { title, count: items.length, lines: lines() };
}

/** As many lines as fit, followed by the number of remaining ones. Undefined if no line fits. */
function listed({ title, count, lines }: List, room: number): string | undefined {
  const rest = (count: number): string => `… and ${count} more`;
  const shown = [title];
  let left = room - title.length - rest(count).length - 4;
  for (const line of lines) {
    left -= line.length + 1;
    if (left < 0) break;
    shown.push(line);
  }
  if (shown.length === 1) return undefined;
  const hidden = count - (shown.length - 1);
  return (hidden > 0 ? [...shown, rest(hidden)] : shown).join("\n");
}
