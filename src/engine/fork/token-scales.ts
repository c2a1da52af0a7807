import type { CancelSignal } from "../event.ts";
import type { FilePart, Message, Part } from "../server-model.ts";
import type { TokenCounter } from "../token-counter.ts";
import { utf8Length } from "../utf8.ts";
import { resultOf } from "./tool-result.ts";

/** What an image takes of a model's context, about, and what any other file takes at least, in tokens. */
const IMAGE_TOKENS = 1_600;
/** Bytes that a token has on average: an estimate, for what is not counted. */
const BYTES_PER_TOKEN = 4;

/** A number of tokens. */
export interface TokenSum {
  readonly tokens: number;
  /** Not all of it was counted: for the rest, a token was taken to be four bytes. */
  readonly isEstimate: boolean;
}

interface Weight {
  /** No message has more tokens than this. */
  readonly atMost: number;
  readonly estimate: number;
}

/** Knows what messages weigh, and counts as little as it can for that: counting takes far longer than measuring. */
export class TokenScales {
  private readonly weights = new Map<Message, Weight>();
  private readonly counted = new Map<Message, number>();

  constructor(
    private readonly counter: TokenCounter,
    private readonly signal?: CancelSignal,
  ) {}

  /** The tokens that a message has at most, without counting: a token is at least one byte. */
  atMost(message: Message): number {
    return this.weightOf(message).atMost;
  }

  /** Counts those messages that were not counted yet. */
  async count(messages: readonly Message[]): Promise<void> {
    const fresh = [...new Set(messages)].filter((message) => !this.counted.has(message));
    const tokens = await this.countParts(fresh.flatMap(({ parts }) => parts));
    let next = 0;
    for (const message of fresh) {
      const end = next + message.parts.length;
      this.counted.set(message, total(tokens.slice(next, end)));
      next = end;
    }
  }

  async countParts(parts: readonly Part[]): Promise<readonly number[]> {
    const tokens = await this.countTexts(parts.map(textOf));
    return parts.map((part, index) => (tokens[index] ?? 0) + fileTokens(part));
  }

  async countTexts(texts: readonly string[]): Promise<readonly number[]> {
    return texts.length === 0 ? [] : this.counter.count(texts, this.signal);
  }

  /** What a message weighs: counted, if it was. */
  tokens(message: Message): number {
    return this.counted.get(message) ?? this.weightOf(message).estimate;
  }

  sum(messages: readonly Message[]): TokenSum {
    return {
      tokens: total(messages.map((message) => this.tokens(message))),
      isEstimate: messages.some((message) => !this.counted.has(message)),
    };
  }

  private weightOf(message: Message): Weight {
    let weight = this.weights.get(message);
    if (!weight) this.weights.set(message, (weight = measure(message)));
    return weight;
  }
}

/** What a text takes that is not counted, in tokens. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

function measure({ parts }: Message): Weight {
  let bytes = 0;
  let fixed = 0;
  for (const part of parts) {
    bytes += utf8Length(textOf(part));
    fixed += fileTokens(part);
  }
  return { atMost: bytes + fixed, estimate: estimateTokens(bytes) + fixed };
}

/** What is counted of a part: enough for its own form and for the one in which it is written out as text. */
function textOf(part: Part): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "tool":
      return `[Tool: ${part.tool}] ${JSON.stringify(part.state.input)}\n[Result of ${part.callID}] ${resultOf(part.state) ?? ""}`;
    default:
      return "";
  }
}

function fileTokens(part: Part): number {
  if (part.type !== "file") return 0;
  return isImage(part) ? IMAGE_TOKENS : Math.max(IMAGE_TOKENS, estimateTokens(part.url.length));
}

export function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function isImage({ mime }: FilePart): boolean {
  return mime.startsWith("image/");
}
