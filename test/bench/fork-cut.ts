/** How long it takes to cut a 5 MB conversation for a fork, not including token counting. */
import { cutHistory, type CutHistory } from "../../src/engine/fork/cut.ts";
import { inheritedHistory } from "../../src/engine/fork/inherited-history.ts";
import { forkPreamble } from "../../src/engine/fork/preamble.ts";
import type { Message } from "../../src/engine/server-model.ts";
import type { TokenCounter } from "../../src/engine/token-counter.ts";
import { conversation } from "./support/conversation.ts";
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const BYTES = 5_000_000;
const LIMITS = { maxToolResultChars: 1_500, maxTokens: 100_000 };

/** Returns counts immediately. */
const counter: TokenCounter = { count: async (texts) => texts.map(({ length }) => Math.ceil(length / 4)) };

/** In the first, tool results are large and get shortened; in the second, texts are large and can only be removed. */
const conversations = {
  results: conversation(BYTES, { textLength: 500, resultLength: 18_000 }),
  texts: conversation(BYTES, { textLength: 8_000, resultLength: 1_200 }),
};

const report = new Report("fork-cut");
for (const [name, source] of Object.entries(conversations)) {
  const json = JSON.stringify(source);
  const messages = JSON.parse(json) as Message[];
  const figures = await interleaved(
    { rounds: 31, warmUp: 5 },
    {
      json: () => timed(() => JSON.stringify(JSON.parse(json))),
      cut: () => timed(() => cut(messages)),
    },
  );
  const { removed, shortened } = await cut(messages);
  if (removed.length === 0 || (name === "results" && shortened.length === 0))
    throw new Error("Nothing was cut.");
  const ratio = ratios(figures.cut, figures.json);
  report.figures(`${name}: JSON`, "ms", figures.json);
  report.figures(`${name}: cut`, "ms", figures.cut);
  report.budget({ what: `${name}: cut / JSON`, value: median(ratio), limit: 2, unit: "×" });
}
report.finish();

/** Cuts including the preamble, which counts towards the limit. */
function cut(messages: readonly Message[]): Promise<CutHistory> {
  return cutHistory(inheritedHistory(messages), LIMITS, counter, undefined, (cut) => forkPreamble(cut));
}
