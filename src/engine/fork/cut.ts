import { invalidArgument } from "../errors.ts";
import { sentence } from "../sentence.ts";
import type { Message } from "../server-model.ts";
import type { TokenCounter } from "../token-counter.ts";
import { utf8Length } from "../utf8.ts";
import { fitMessages, type FittedMessages } from "./fit.ts";
import type { InheritedHistory } from "./inherited-history.ts";
import { estimateTokens, TokenScales, type TokenSum } from "./token-scales.ts";
import { shortenResult } from "./tool-result.ts";

export interface CutLimits {
  /** The maximum length of a tool result, in characters (UTF-16 units). */
  readonly maxToolResultChars: number;
  /** The maximum tokens of all messages and the opening together. */
  readonly maxTokens: number;
}

/** A call whose result was shortened, with the input needed to repeat it. */
export interface ShortenedResult {
  readonly messageID: string;
  readonly callID: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Length of the result before it was ever shortened, in characters (UTF-16 units). */
  readonly originalChars: number;
}

/** The part of a conversation that a fork inherits, within the limits. */
export interface CutHistory {
  readonly source: InheritedHistory;
  readonly limits: CutLimits;
  /** The oldest first. Messages that were not shortened are the source's own objects. */
  readonly messages: readonly Message[];
  /** The messages left out, the oldest first. */
  readonly removed: readonly Message[];
  /** The shortened results of the calls that are kept, the oldest first. */
  readonly shortened: readonly ShortenedResult[];
  /** How many messages were shortened in the middle. */
  readonly shortenedMessages: number;
  readonly tokensBefore: TokenSum;
  readonly tokensAfter: TokenSum;
}

/** The share of an opening's tokens reserved on top of it, because the next cut changes the numbers in the opening. */
const OPENING_MARGIN = 0.05;

/**
 * Cuts a history to the limits: shortens tool results that are too long, then removes the oldest messages until the
 * rest fits (see {@link fitMessages}). A call keeps its name, arguments and ID. Cutting again changes nothing. Tokens
 * are counted only if the lengths of the texts do not settle the question.
 *
 * Rejects with a `Refusal` if a limit is not a number greater than 0, and with the counter's errors.
 *
 * @param opening returns the text sent before the messages, which depends on the cut and counts toward the limit
 */
export async function cutHistory(
  source: InheritedHistory,
  limits: CutLimits,
  counter: TokenCounter,
  signal?: AbortSignal,
  opening: (cut: CutHistory) => string = () => "",
): Promise<CutHistory> {
  requireLimits(limits);
  const { maxTokens, maxToolResultChars } = limits;
  const scales = new TokenScales(counter, signal);
  const { messages, calls, charsLeftOut } = shortenResults(source.messages, maxToolResultChars);

  const describe = (fitted: FittedMessages): CutHistory => {
    const kept = new Set(fitted.messages.flatMap(callKeys));
    const before = scales.sum(messages);
    return {
      source,
      limits,
      ...fitted,
      shortened: calls.filter(({ messageID, callID }) => kept.has(callKey(messageID, callID))),
      tokensBefore: {
        tokens: before.tokens + estimateTokens(charsLeftOut),
        isEstimate: before.isEstimate || charsLeftOut > 0,
      },
      tokensAfter: scales.sum(fitted.messages),
    };
  };

  let cut = describe({ messages, removed: [], shortenedMessages: 0 });
  if (scales.areSureToFit(messages, maxTokens - utf8Length(opening(cut)))) return cut;
  for (let reserved = -1; ;) {
    const [needed = 0] = await scales.countTexts([opening(cut)]);
    if (needed <= reserved) return cut;
    reserved = Math.ceil(needed * (1 + OPENING_MARGIN));
    cut = describe(await fitMessages(messages, Math.max(0, maxTokens - reserved), scales));
  }
}

function callKeys({ info, parts }: Message): readonly string[] {
  return parts.flatMap((part) => (part.type === "tool" ? [callKey(info.id, part.callID)] : []));
}

/** Identifies a call. Its ID alone may not be unique. */
function callKey(messageID: string, callID: string): string {
  return `${messageID}/${callID}`;
}

/** Whether part of the history is missing. */
export function isCut({ removed, shortened, shortenedMessages, source }: CutHistory): boolean {
  return removed.length > 0 || shortened.length > 0 || shortenedMessages > 0 || source.leftOutFiles > 0;
}

/** Throws a `Refusal` if a limit is not a number greater than 0. */
export function requireLimits({ maxToolResultChars, maxTokens }: CutLimits): void {
  requireLimit("fork.maxToolResultChars", maxToolResultChars);
  requireLimit("fork.maxTokens", maxTokens);
}

function requireLimit(name: string, value: unknown): void {
  if (typeof value === "number" && value > 0) return;
  throw invalidArgument(
    sentence("The limit {0} must be a number greater than 0. Change it in the settings.", name),
  );
}

interface ShortResults {
  readonly messages: readonly Message[];
  readonly calls: readonly ShortenedResult[];
  readonly charsLeftOut: number;
}

function shortenResults(source: readonly Message[], maxChars: number): ShortResults {
  const calls: ShortenedResult[] = [];
  let charsLeftOut = 0;
  const messages = source.map((message) => {
    const known = calls.length;
    const parts = message.parts.map((part) => {
      const shortened = part.type === "tool" ? shortenResult(part, maxChars) : undefined;
      if (!shortened) return part;
      const { originalChars } = shortened;
      const { callID, tool, state } = shortened.part;
      calls.push({ messageID: message.info.id, callID, tool, input: state.input, originalChars });
      charsLeftOut += originalChars - maxChars;
      return shortened.part;
    });
    return calls.length === known ? message : { info: message.info, parts };
  });
  return { messages, calls, charsLeftOut };
}
