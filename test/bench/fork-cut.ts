/** How long it takes to cut a 5 MB conversation for a fork, not including token counting. */
import { cutHistory, type CutHistory } from "../../src/engine/fork/cut.ts";
import { inheritedHistory } from "../../src/engine/fork/history.ts";
import { forkPreamble } from "../../src/engine/fork/preamble.ts";
import type { Message, Part } from "../../src/engine/server-model.ts";
import type { TokenCounter } from "../../src/engine/token-counter.ts";
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const BYTES = 5_000_000;
const LIMITS = { maxToolResultChars: 1_500, maxTokens: 100_000 };

/** Returns counts immediately. */
const counter: TokenCounter = { count: async (texts) => texts.map(({ length }) => Math.ceil(length / 4)) };

/** In the first, tool results are large and get shortened; in the second, texts are large and can only be removed. */
const conversations = {
  results: conversation({ textLength: 500, resultLength: 18_000 }),
  texts: conversation({ textLength: 8_000, resultLength: 1_200 }),
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

/** Turns of a prompt and three answers with one call each, up to the size in bytes. */
function conversation(size: { readonly textLength: number; readonly resultLength: number }): Message[] {
  const messages: Message[] = [];
  for (let bytes = 0; bytes < BYTES;) {
    const isPrompt = messages.length % 4 === 0;
    const message = isPrompt ? prompt(messages.length) : answer(messages.length, size);
    bytes += JSON.stringify(message).length;
    messages.push(message);
  }
  return messages;
}

function prompt(index: number): Message {
  const id = `msg_${index}`;
  return {
    info: { role: "user", id, sessionID: "ses_source", created: index, agent: "build" },
    parts: [textPart(id, "Look at the next file and say what is wrong with it. ".repeat(4))],
  };
}

function answer(
  index: number,
  size: { readonly textLength: number; readonly resultLength: number },
): Message {
  const id = `msg_${index}`;
  const place = { sessionID: "ses_source", messageID: id };
  return {
    info: {
      role: "assistant",
      id,
      sessionID: "ses_source",
      parentID: `msg_${index - (index % 4)}`,
      created: index,
      completed: index,
      agent: "build",
      model: { providerID: "fake", modelID: "m" },
      finish: "tool-calls",
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
      summary: false,
    },
    parts: [
      { ...place, id: `prt_${index}_0`, type: "other", kind: "step-start" },
      textPart(
        id,
        filled("The error is thrown in its first function – “naïve” — so I go on. ", size.textLength),
      ),
      {
        ...place,
        id: `prt_${index}_2`,
        type: "tool",
        tool: "read",
        callID: `call_${index}`,
        state: {
          status: "completed",
          input: { filePath: `/workspace/src/part-${index}.ts`, offset: index, limit: 400 },
          output: filled('  const value = read("key"); // the same again\n', size.resultLength),
          title: `part-${index}.ts`,
          start: index,
          end: index,
        },
      },
      { ...place, id: `prt_${index}_3`, type: "other", kind: "step-finish" },
    ],
  };
}

function textPart(messageID: string, text: string): Part {
  return {
    id: `${messageID}_text`,
    sessionID: "ses_source",
    messageID,
    type: "text",
    text,
    synthetic: false,
  };
}

function filled(words: string, length: number): string {
  return words.repeat(Math.ceil(length / words.length)).slice(0, length);
}
