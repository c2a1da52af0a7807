import type { Message } from "../server-model.ts";
import { shortenMessage } from "./shorten-message.ts";
import { total, type TokenScales } from "./token-scales.ts";

/** How much is counted at once, in bytes: enough that calls cost little, little enough that few old messages are counted. */
const BATCH_BYTES = 128 * 1024;
/** The share of the limit that may be kept from the newest messages for an older prompt, or for a part of a summary. */
const FRAME_SHARE = 1 / 4;

export interface FittedMessages {
  readonly messages: readonly Message[];
  readonly removed: readonly Message[];
  /** How many of the messages lost their middle. */
  readonly shortenedMessages: number;
}

/**
 * The newest of the messages (oldest first) that have at most `maxTokens` together; older ones are removed. Two things
 * stay however old they are: a compaction's summary at the front, without which all that it stands for would be lost, and
 * the prompt that the first of the kept answers belongs to, so that no answer stands there without its question. Where
 * they are large, they leave most of the limit to the newest messages, and their own middle is left out. So is that of
 * the newest message, if there is no room for it.
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

/** What is kept of the limit for a message that stays whatever comes after it. */
type Reserve = (message: Message | undefined) => number;

interface MessageInTurn {
  readonly message: Message;
  /** The prompt that an answer belongs to; none for a prompt itself. */
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

/** A compaction's summary with the request for it, if these messages begin with one. */
function summaryOf(messages: readonly Message[]): readonly Message[] {
  const [request, summary] = messages;
  return request?.info.role === "user" && summary?.info.role === "assistant" && summary.info.summary
    ? [request, summary]
    : [];
}

/** From where on the messages fit, the reserve for the prompt of the first of them included; counted from the newest on. */
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
 * Shares the limit among messages of which the first `frameLength` have a reserve: the newest take what they need beside
 * it, and what they leave the older ones may take. A message that needs more loses its middle.
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

/** A message is more than its parts: what is said about them has tokens too. */
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
