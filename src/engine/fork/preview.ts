import type { CutHistory, CutLimits } from "./cut.ts";
import type { ForkPlan } from "./plan.ts";
import { forkPreamble, type ForkFacts } from "./preamble.ts";
import type { TokenSum } from "./token-scales.ts";
import { transcriptText } from "./transcript-text.ts";

/** What users see about a fork before launching it. */
export interface ForkPreview {
  readonly kind: ForkPlan["kind"];
  readonly messagesBefore: number;
  readonly messagesAfter: number;
  readonly tokensBefore: TokenSum;
  readonly tokensAfter: TokenSum;
  readonly shortenedResults: number;
  readonly shortenedMessages: number;
  readonly leftOutFiles: number;
  readonly limits: CutLimits;
  /** Everything that the child will see, as text. */
  readonly text: string;
}

export function forkPreview(cut: CutHistory, plan: ForkPlan, facts: ForkFacts = {}): ForkPreview {
  const { source, limits, messages, shortened, shortenedMessages, tokensBefore, tokensAfter } = cut;
  return {
    kind: plan.kind,
    messagesBefore: source.messages.length,
    messagesAfter: messages.length,
    tokensBefore,
    tokensAfter,
    shortenedResults: shortened.length,
    shortenedMessages,
    leftOutFiles: source.leftOutFiles,
    limits,
    text: [forkPreamble(cut, facts), transcriptText(messages)].filter((text) => text !== "").join("\n\n"),
  };
}
