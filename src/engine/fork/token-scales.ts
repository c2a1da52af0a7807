import type { AttachedFile, Message, Part } from "../server-model.ts";
import type { TokenCounter } from "../token-counter.ts";
import { utf8Length } from "../utf8.ts";
import { attachmentsOf, resultOf } from "./tool-result.ts";
import { messageText, partText } from "./transcript-text.ts";

/** About how many tokens an image takes of a model's context. Other files take at least as many. */
const IMAGE_TOKENS = 1_600;
/** The most that another file is counted as. Models read the pages of a PDF, which take less than its bytes would. */
const MAX_FILE_TOKENS = 20_000;
/** The average bytes per token, used to estimate what is not counted. */
const BYTES_PER_TOKEN = 4;
/** About how many bytes a message takes besides its parts. */
const LABEL_BYTES = 8;

/** A number of tokens. */
export interface TokenSum {
  readonly tokens: number;
  /** Whether some of the tokens were estimated, at four bytes per token. */
  readonly isEstimate: boolean;
}

/** Determines the tokens of messages. Counts as little as possible, since estimating is much faster. */
export class TokenScales {
  private readonly estimates = new Map<Message, number>();
  private readonly upperBounds = new Map<Message, number>();
  private readonly counted = new Map<Message, number>();
  private readonly countedParts = new Map<Part, number>();

  constructor(
    private readonly counter: TokenCounter,
    private readonly signal?: AbortSignal,
  ) {}

  /** The maximum tokens of a message, without counting: a token has at least one byte. */
  atMost(message: Message): number {
    return cached(this.upperBounds, message, () => utf8Length(sentText(message)) + filesTokens(message));
  }

  /** Whether the messages certainly have at most this many tokens. False if that would take counting. */
  areSureToFit(messages: readonly Message[], maxTokens: number): boolean {
    let room = maxTokens;
    return messages.every((message) => (room -= this.atMost(message)) >= 0);
  }

  /** Counts the messages that have not been counted yet. */
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

  /** The tokens of a message: the exact number if it was counted, otherwise an estimate. */
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

/** Estimates the tokens of a text that is not counted. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Fast, as most messages of a long conversation are only estimated. */
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
 * The counted text of a message: its paragraph in a transcript including the separator, with complete arguments, as
 * messages that are handed over natively have them.
 */
function sentText(message: Message): string {
  const text = messageText(message, Infinity);
  return text === undefined ? "" : `${text}\n\n`;
}

function filesTokens({ parts }: Message): number {
  return total(parts.map(fileTokens));
}

function fileTokens(part: Part): number {
  if (part.type === "tool") return total(attachmentsOf(part.state).map(tokensOfFile));
  return part.type === "file" ? tokensOfFile(part) : 0;
}

function tokensOfFile(file: AttachedFile): number {
  if (isImage(file)) return IMAGE_TOKENS;
  return Math.min(MAX_FILE_TOKENS, Math.max(IMAGE_TOKENS, estimateTokens(file.url.length)));
}

function cached<K, V>(cache: Map<K, V>, key: K, make: () => V): V {
  let value = cache.get(key);
  if (value === undefined) cache.set(key, (value = make()));
  return value;
}

export function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function isImage({ mime }: AttachedFile): boolean {
  return mime.startsWith("image/");
}
