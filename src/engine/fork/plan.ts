import type { Message } from "../server-model.ts";
import { isCut, type CutHistory } from "./cut.ts";

/** How many events a fork may take. The server needs about 3 ms for each, whatever its size. */
const MAX_EVENTS = 150;
/** The events for the older messages: one message with one text part. */
const OPENING_EVENTS = 2;

/**
 * How a fork gets its history:
 *
 * - `copy`: the server copies the source's conversation.
 * - `replay`: older messages are written as one text, and recent ones as messages, into a new session.
 * - `text`: all messages become one text, in a prompt that is stored without starting a turn.
 */
export type ForkPlan =
  | { readonly kind: "copy" }
  | { readonly kind: "replay"; readonly asText: readonly Message[]; readonly native: readonly Message[] }
  | { readonly kind: "text"; readonly asText: readonly Message[] };

export interface ForkOptions {
  /**
   * - `auto`: a replay, which is fastest. If the server cannot replay, a copy if it is short and shows the child the
   *   same.
   * - `fork`: a copy whenever it shows the child the same, however long it takes; never a replay.
   * - `replay`: never a copy.
   */
  readonly strategy: "auto" | "fork" | "replay";
  /** Whether the server can replay. If not, the history is written as text. */
  readonly hasReplay: boolean;
  /** The maximum number of events of a copy or a replay. */
  readonly maxEvents?: number | undefined;
}

/**
 * Chooses how a cut history is handed over. A copy is only right if nothing was cut and no call was running: otherwise
 * it would show the child what the limits leave out, or a call that never ends. The server is slower at copying than at
 * replaying, and also copies everything before a compaction.
 *
 * A replay writes as many recent messages natively as the events allow (one per message and one per part), beginning
 * with a prompt if possible. If a single turn is too long, its end is native, and the text before it replaces its
 * prompt.
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
