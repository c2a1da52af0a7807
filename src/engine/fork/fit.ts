import type { Message } from "../server-model.ts";
import { asksForSummary } from "./inherited-history.ts";
import { shortenMessage } from "./shorten-message.ts";
import { total, type TokenScales } from "./token-scales.ts";

/** How many bytes are counted per call: enough to save calls, but few enough to count few old messages. */
const BATCH_BYTES = 128 * 1024;
/** The share of the limit that may be reserved for an older prompt, and for each part of a summary. */
const FRAME_SHARE = 1 / 4;

export interface FittedMessages {
  readonly messages: readonly Message[];
  readonly removed: readonly Message[];
  /** How many messages were shortened in the middle. */
  readonly shortenedMessages: number;
}

/**
 * The newest of the messages (oldest first) that have at most `maxTokens` together. Two things stay however old they
 * are: a compaction's summary at the front, and the prompt of the first kept answer. If they are large, they are
 * shortened in the middle, so that most of the limit is left for the newest messages. The newest message is shortened
 * too if it does not fit.
 */
export async function fitMessages(
  messages: readonly Message[],
  maxTokens: number,
  scales: TokenScales,
): Promise<FittedMessages> {
  const all = { messages, removed: [], shortenedMessages: 0 };
  if (scales.areSureToFit(messages, maxTokens)) return all;

  const summary = summaryOf(messages);
  await scales.count(summary);
  const reserve: Reserve = (message) =>
    message ? Math.min(scales.tokens(message), Math.floor(maxTokens * FRAME_SHARE)) : 0;
  const room = maxTokens - total(summary.map(reserve));
  const turns = inTurns(messages.slice(summary.length));
  const fitting = await firstThatFits(turns, room, scales, reserve);
  if (fitting === 0 && scales.sum(messages).tokens <= maxTokens) return all;

  // The newest message stays even if there is no room for all of it.
  const start = Math.max(0, Math.min(fitting, turns.length - 1));
  const prompt = turns[start]?.prompt;
  const frame = prompt ? [...summary, prompt] : summary;
  const removed = turns.slice(0, start).flatMap(({ message }) => (message === prompt ? [] : [message]));
  const kept = [...frame, ...turns.slice(start).map(({ message }) => message)];
  return { ...(await shareOut(kept, frame.length, maxTokens, scales, reserve)), removed };
}

/** The tokens reserved for a message that always stays. */
type Reserve = (message: Message | undefined) => number;

interface MessageInTurn {
  readonly message: Message;
  /** The prompt that an answer belongs to. Undefined for a prompt itself. */
  readonly prompt: Message | undefined;
}

function inTurns(messages: readonly Message[]): readonly MessageInTurn[] {
  let newest: Message | undefined;
  return messages.map((message) => {
    if (message.info.role === "assistant") return { message, prompt: newest };
    newest = message;
    return { message, prompt: undefined };
  });
}

/** A compaction's summary and the request for it, if the messages begin with them. */
function summaryOf(messages: readonly Message[]): readonly Message[] {
  const [request, summary] = messages;
  if (request?.info.role !== "user" || summary?.info.role !== "assistant") return [];
  return summary.info.summary || asksForSummary(request) ? [request, summary] : [];
}

/** The index of the first message from which all fit, including the reserve for that message's prompt. */
async function firstThatFits(
  turns: readonly MessageInTurn[],
  room: number,
  scales: TokenScales,
  reserve: Reserve,
): Promise<number> {
  let counted = turns.length;
  let used = 0;
  for (const [index, { message, prompt }] of [...turns.entries()].reverse()) {
    if (index < counted) {
      const batch = batchBefore(counted, turns, scales);
      counted -= batch.length;
      const { prompt } = turns[counted] ?? {};
      await scales.count(prompt ? [prompt, ...batch] : batch);
    }
    used += scales.tokens(message);
    if (used + reserve(prompt) > room) return index + 1;
  }
  return 0;
}

function batchBefore(end: number, turns: readonly MessageInTurn[], scales: TokenScales): readonly Message[] {
  const batch: Message[] = [];
  let bytes = 0;
  for (const { message } of turns.slice(0, end).reverse()) {
    batch.push(message);
    bytes += scales.atMost(message);
    if (bytes >= BATCH_BYTES) break;
  }
  return batch;
}

/**
 * Shares the limit among messages of which the first `frameLength` have a reserve. The newest messages are served
 * first, and what they leave is available to older ones. A message that needs more is shortened in the middle.
 */
async function shareOut(
  messages: readonly Message[],
  frameLength: number,
  maxTokens: number,
  scales: TokenScales,
  reserve: Reserve,
): Promise<Omit<FittedMessages, "removed">> {
  const reserves = messages.map((message, index) => (index < frameLength ? reserve(message) : 0));
  let room = maxTokens - total(reserves);
  let shortenedMessages = 0;
  const kept: Message[] = [];
  for (const [index, message] of [...messages.entries()].reverse()) {
    room = Math.max(0, room) + (reserves[index] ?? 0);
    const isTooLarge = scales.tokens(message) > room;
    const fitted = isTooLarge ? await shortenTo(room, message, scales) : message;
    if (isTooLarge) shortenedMessages++;
    await scales.count([fitted]);
    room -= scales.tokens(fitted);
    kept.push(fitted);
  }
  return { messages: kept.reverse(), shortenedMessages };
}

/** Repeats with less room if needed, because a message takes more tokens than its parts alone. */
async function shortenTo(room: number, message: Message, scales: TokenScales): Promise<Message> {
  for (let partsRoom = room; ;) {
    const shortened = await shortenMessage(message, partsRoom, scales);
    await scales.count([shortened]);
    const excess = scales.tokens(shortened) - room;
    if (excess <= 0) return shortened;
    if (partsRoom === 0) return { info: message.info, parts: [] };
    partsRoom = Math.max(0, partsRoom - excess);
  }
}
