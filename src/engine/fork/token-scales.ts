import type { CancelSignal } from "../event.ts";
import type { FilePart, Message, Part } from "../server-model.ts";
import type { TokenCounter } from "../token-counter.ts";
import { utf8Length } from "../utf8.ts";
import { resultOf } from "./tool-result.ts";
import { messageText, partText } from "./transcript-text.ts";

/** What an image takes of a model's context, about, and what any other file takes at least, in tokens. */
const IMAGE_TOKENS = 1_600;
/** Bytes that a token has on average: an estimate, for what is not counted. */
const BYTES_PER_TOKEN = 4;
/** What a message takes beside its parts, about. */
const LABEL_BYTES = 8;

/** A number of tokens. */
export interface TokenSum {
  readonly tokens: number;
  /** Not all of it was counted: for the rest, a token was taken to be four bytes. */
  readonly isEstimate: boolean;
}

/** Knows what messages weigh, and counts as little as it can for that: counting takes far longer than measuring. */
export class TokenScales {
  private readonly estimates = new Map<Message, number>();
  private readonly upperBounds = new Map<Message, number>();
  private readonly counted = new Map<Message, number>();
  private readonly countedParts = new Map<Part, number>();

  constructor(
    private readonly counter: TokenCounter,
    private readonly signal?: CancelSignal,
  ) {}

  /** The tokens that a message has at most, without counting: a token is at least one byte. */
  atMost(message: Message): number {
    return cached(this.upperBounds, message, () => utf8Length(sentText(message)) + filesTokens(message));
  }

  /** Whether the messages have at most so many tokens; false if that takes counting. */
  areSureToFit(messages: readonly Message[], maxTokens: number): boolean {
    let room = maxTokens;
    return messages.every((message) => (room -= this.atMost(message)) >= 0);
  }

  /** Counts those messages that were not counted yet. */
  async count(messages: readonly Message[]): Promise<void> {
    const fresh = [...new Set(messages)].filter((message) => !this.counted.has(message));
    const tokens = await this.countTexts(fresh.map(sentText));
    for (const [index, message] of fresh.entries())
      this.counted.set(message, (tokens[index] ?? 0) + filesTokens(message));
  }

  async countParts(parts: readonly Part[]): Promise<readonly number[]> {
    const fresh = parts.filter((part) => !this.countedParts.has(part));
    const tokens = await this.countTexts(fresh.map((part) => partText(part, Infinity)));
    for (const [index, part] of fresh.entries())
      this.countedParts.set(part, (tokens[index] ?? 0) + fileTokens(part));
    return parts.map((part) => this.countedParts.get(part) ?? 0);
  }

  async countTexts(texts: readonly string[]): Promise<readonly number[]> {
    return texts.length === 0 ? [] : this.counter.count(texts, this.signal);
  }

  /** What a message weighs: counted, if it was. */
  tokens(message: Message): number {
    return this.counted.get(message) ?? cached(this.estimates, message, () => estimate(message));
  }

  sum(messages: readonly Message[]): TokenSum {
    return {
      tokens: total(messages.map((message) => this.tokens(message))),
      isEstimate: messages.some((message) => !this.counted.has(message)),
    };
  }
}

/** What a text takes that is not counted, in tokens. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Quick, as most messages of a long conversation are only estimated. */
function estimate(message: Message): number {
  return estimateTokens(total(message.parts.map(bytesOf)) + LABEL_BYTES) + filesTokens(message);
}

function bytesOf(part: Part): number {
  switch (part.type) {
    case "text":
      return utf8Length(part.text);
    case "tool":
      return utf8Length(JSON.stringify(part.state.input)) + utf8Length(resultOf(part.state) ?? "");
    default:
      return 0;
  }
}

/**
 * What is counted of a message: its paragraph in a transcript, up to the next one, with the whole of all arguments, as a
 * message that is handed over as such has them.
 */
function sentText(message: Message): string {
  const text = messageText(message, Infinity);
  return text === undefined ? "" : `${text}\n\n`;
}

function filesTokens({ parts }: Message): number {
  return total(parts.map(fileTokens));
}

function fileTokens(part: Part): number {
  if (part.type !== "file") return 0;
  return isImage(part) ? IMAGE_TOKENS : Math.max(IMAGE_TOKENS, estimateTokens(part.url.length));
}

function cached<K, V>(cache: Map<K, V>, key: K, make: () => V): V {
  let value = cache.get(key);
  if (value === undefined) cache.set(key, (value = make()));
  return value;
}

export function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function isImage({ mime }: FilePart): boolean {
  return mime.startsWith("image/");
}
