import type { Message } from "../server-model.ts";
import { isCut, type CutHistory } from "./cut.ts";

/** Replayed events that a fork may take: the server needs about 3 ms for each, whatever its size. */
const MAX_EVENTS = 150;
/** What the older messages take: one message with one part, their text. */
const OPENING_EVENTS = 2;

/**
 * How a fork gets its history.
 *
 * - `copy`: the server copies the source's conversation as it is.
 * - `replay`: into a new session are written, as one text, the older messages, and natively the recent ones.
 * - `text`: all messages become one text, in a prompt that is only stored.
 */
export type ForkPlan =
  | { readonly kind: "copy" }
  | { readonly kind: "replay"; readonly asText: readonly Message[]; readonly native: readonly Message[] }
  | { readonly kind: "text"; readonly asText: readonly Message[] };

export interface ForkOptions {
  /**
   * `auto`: a replay, which is the quickest; where the server has none, a copy of what is short, if one shows the child
   * the same.
   * `fork`: a copy wherever one shows the child the same, however long it takes, and never a replay.
   * `replay`: never a copy.
   */
  readonly strategy: "auto" | "fork" | "replay";
  /** Whether the server can replay; where it cannot, a text takes the place. */
  readonly hasReplay: boolean;
  /** Most events that a copy or a replay may take. */
  readonly maxEvents?: number | undefined;
}

/**
 * Chooses how a cut history is handed over. A copy is right only where nothing was cut and nothing was in flight, as it
 * would show the child what the limits leave out, or a call that never ends. It takes the server more time than a replay,
 * of however few messages, and that for everything that was ever said, even before a compaction. A replay keeps as many of the recent messages native as the events allow: one for
 * a message, and one for each of its parts. They begin with a prompt where the events allow that; of a turn too long for
 * them the end is native, and the text before it stands in for its prompt.
 */
export function planFork(
  cut: CutHistory,
  { strategy, hasReplay, maxEvents = MAX_EVENTS }: ForkOptions,
): ForkPlan {
  const { messages, source } = cut;
  const isSame = source.isWhole && !isCut(cut);
  const isWanted =
    strategy === "fork" || (strategy === "auto" && !hasReplay && source.sourceEvents <= maxEvents);
  if (isSame && isWanted) return { kind: "copy" };
  if (strategy === "fork" || !hasReplay) return { kind: "text", asText: messages };
  const start = firstNative(messages, maxEvents - OPENING_EVENTS);
  return { kind: "replay", asText: messages.slice(0, start), native: messages.slice(start) };
}

function firstNative(messages: readonly Message[], maxEvents: number): number {
  let start = messages.length;
  for (let events = 0; start > 0; start--) {
    events += 1 + (messages[start - 1]?.parts.length ?? 0);
    if (events > maxEvents) break;
  }
  const prompt = messages.findIndex(({ info }, index) => index >= start && info.role === "user");
  return prompt === -1 ? start : prompt;
}
