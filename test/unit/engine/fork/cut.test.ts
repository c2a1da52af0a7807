import assert from "node:assert/strict";
import { cutHistory, type CutHistory, type CutLimits } from "../../../../src/engine/fork/cut.ts";
import { MAX_FILE_URL } from "../../../../src/engine/fork/file-text.ts";
import { inheritedHistory } from "../../../../src/engine/fork/inherited-history.ts";
import type { Message } from "../../../../src/engine/server-model.ts";
import {
  agent,
  ByteCounter,
  call,
  file,
  HALF_PAIR,
  history,
  ids,
  mark,
  resultIn,
  user,
  words,
} from "./conversation.ts";

const LIMITS: CutLimits = { maxToolResultChars: 1_500, maxTokens: 100_000 };

interface Cutting {
  readonly messages: readonly Message[];
  readonly limits?: Partial<CutLimits>;
  readonly counter?: ByteCounter;
}

function cut({ messages, limits, counter = new ByteCounter() }: Cutting): Promise<CutHistory> {
  return cutHistory(history(...messages), { ...LIMITS, ...limits }, counter);
}

/** A message with this many tokens according to the counter, including its label and the lines between messages. */
const prompt = (id: string, letter: string, tokens: number): Message =>
  user(id, letter.repeat(tokens - "User: \n\n".length));
const answer = (id: string, letter: string, tokens: number): Message =>
  agent(id, {}, letter.repeat(tokens - "Agent: \n\n".length));

/** Turns of a prompt and an answer, each with this many tokens. */
function turns(count: number, tokens: number): Message[] {
  return Array.from({ length: count }, (_, n) => [
    prompt(`u${n}`, "u", tokens),
    answer(`a${n}`, "a", tokens),
  ]).flat();
}

describe("results of calls in a fork", () => {
  async function shortened(output: string, limits: Partial<CutLimits> = {}): Promise<CutHistory> {
    const messages = [user("u1", "Go."), agent("a1", {}, call("c1", { output }))];
    return cut({ messages, limits });
  }

  it("stay unchanged up to the limit", async () => {
    const result = await shortened("x".repeat(1_500));
    assert.equal(resultIn(result.messages[1]?.parts[0]), "x".repeat(1_500));
    assert.deepEqual(result.shortened, []);
  });

  it("are shortened from one character more, and state their length", async () => {
    const result = await shortened("x".repeat(1_501));
    assert.equal(
      resultIn(result.messages[1]?.parts[0]),
      `${"x".repeat(1_500)}\n[Shortened: the first 1500 of 1501 characters]`,
    );
    assert.deepEqual(result.shortened, [
      { messageID: "a1", callID: "c1", tool: "read", input: { path: "c1.ts" }, originalChars: 1_501 },
    ]);
  });

  it("are also shortened if they are errors", async () => {
    const part = call("c1", { error: "e".repeat(2_000) });
    const { messages } = await cut({ messages: [user("u1", "Go."), agent("a1", {}, part)] });
    assert.match(
      resultIn(messages[0 + 1]?.parts[0]),
      /^e{1500}\n\[Shortened: the first 1500 of 2000 characters\]$/,
    );
  });

  it("keep name, arguments and ID of their call", async () => {
    const input = { content: "z".repeat(5_000), nested: [1, { a: null }] };
    const part = call("c1", { output: "x".repeat(9_000), input }, "write");
    const { messages } = await cut({ messages: [user("u1", "Go."), agent("a1", {}, part)] });
    const kept = messages[1]?.parts[0];
    assert.ok(kept?.type === "tool");
    assert.deepEqual([kept.tool, kept.callID, kept.state.input], ["write", "c1", input]);
  });

  it("are not cut within a character", async () => {
    for (const output of ["😀".repeat(1_000), `x${"😀".repeat(1_000)}`, "مرحبا ".repeat(400)])
      assert.doesNotMatch(resultIn((await shortened(output)).messages[1]?.parts[0]), HALF_PAIR);
  });

  it("state their original length when they are shortened again", async () => {
    const once = await shortened("x".repeat(9_000));
    const twice = await cut({ messages: once.messages, limits: { maxToolResultChars: 100 } });
    assert.equal(
      resultIn(twice.messages[1]?.parts[0]),
      `${"x".repeat(100)}\n[Shortened: the first 100 of 9000 characters]`,
    );
    assert.equal(twice.shortened[0]?.originalChars, 9_000);
  });

  it("are not shortened again once they are short enough, even with a tiny limit", async () => {
    for (const maxToolResultChars of [1, 10, 1_500]) {
      const once = await shortened("x".repeat(9_000), { maxToolResultChars });
      const twice = await cut({ messages: once.messages, limits: { maxToolResultChars } });
      assert.deepEqual(twice.messages, once.messages);
      assert.deepEqual(twice.shortened, []);
    }
  });

  it("can be 300 of 20 kB: all stay, shortened, within the limit", async () => {
    const counter = new ByteCounter(4);
    const messages = [
      user("u1", "Read everything."),
      ...Array.from({ length: 300 }, (_, n) =>
        agent(`a${n}`, {}, call(`c${n}`, { output: "word ".repeat(4_000) })),
      ),
    ];
    const result = await cut({ messages, limits: { maxTokens: 150_000 }, counter });
    assert.equal(result.messages.length, 301);
    assert.equal(result.shortened.length, 300);
    assert.ok(counter.total(result.messages) <= 150_000);
    assert.ok(result.tokensBefore.tokens > 1_400_000 && result.tokensBefore.isEstimate);
  });

  it("can be of 200 kB", async () => {
    const result = await shortened("iVBORw0KGgo".repeat(18_000));
    assert.ok(resultIn(result.messages[1]?.parts[0]).length < 1_600);
  });
});

describe("the token limit of a fork", () => {
  it("removes nothing from what fits, and counts nothing that is certain to fit", async () => {
    const counter = new ByteCounter();
    const messages = turns(10, 1_000);
    const result = await cut({ messages, limits: { maxTokens: 20_000 }, counter });
    assert.deepEqual(result.messages, messages);
    assert.ok(result.messages.every((message, index) => message === messages[index]));
    assert.equal(counter.calls, 0);
    assert.deepEqual(result.tokensAfter, { tokens: 5_000, isEstimate: true });
  });

  it("accepts an empty conversation", async () => {
    const result = await cut({ messages: [] });
    assert.deepEqual([result.messages, result.removed, result.tokensAfter.tokens], [[], [], 0]);
  });

  it("counts what might not fit, and keeps it if it does", async () => {
    const counter = new ByteCounter(4);
    const messages = turns(10, 1_000);
    const result = await cut({ messages, limits: { maxTokens: 5_000 }, counter });
    assert.deepEqual(result.messages, messages);
    assert.deepEqual(result.tokensAfter, { tokens: 5_000, isEstimate: false });
  });

  it("removes the oldest messages, no more than necessary, and keeps the newest", async () => {
    const messages = turns(10, 1_000);
    const result = await cut({ messages, limits: { maxTokens: 6_500 } });
    assert.deepEqual(ids(result.messages), ["u7", "a7", "u8", "a8", "u9", "a9"]);
    assert.deepEqual(ids(result.removed), ids(messages.slice(0, 14)));
    assert.deepEqual(result.tokensAfter, { tokens: 6_000, isEstimate: false });
  });

  it("never leaves an answer without its prompt", async () => {
    const messages = turns(3, 1_000);
    for (const maxTokens of [1_500, 2_500, 3_500, 4_500, 5_500]) {
      const result = await cut({ messages, limits: { maxTokens } });
      assert.equal(result.messages[0]?.info.role, "user", String(maxTokens));
    }
  });

  it("keeps the prompt and the newest answers of one long turn", async () => {
    const steps = Array.from({ length: 50 }, (_, n) => answer(`a${n}`, "s", 100));
    const result = await cut({
      messages: [prompt("u1", "p", 100), ...steps],
      limits: { maxTokens: 1_050 },
    });
    assert.deepEqual(ids(result.messages), ["u1", ...ids(steps.slice(41))]);
    assert.equal(result.removed.length, 41);
  });

  it("keeps as much of an older long turn as fits, with its prompt", async () => {
    const steps = Array.from({ length: 50 }, (_, n) => answer(`a${n}`, "s", 100));
    const messages = [prompt("u1", "p", 100), ...steps, prompt("u2", "q", 100), agent("b1", {}, "done")];
    const result = await cut({ messages, limits: { maxTokens: 1_050 } });
    assert.deepEqual(ids(result.messages), ["u1", ...ids(steps.slice(42)), "u2", "b1"]);
  });

  it("shortens a prompt that would leave no room for the newest answers", async () => {
    const steps = Array.from({ length: 10 }, (_, n) => agent(`a${n}`, {}, "s".repeat(1_000)));
    const result = await cut({
      messages: [user("u1", "p".repeat(50_000)), ...steps],
      limits: { maxTokens: 10_000 },
    });
    assert.deepEqual(ids(result.messages), ["u1", ...ids(steps.slice(3))]);
    assert.match(words(result.messages[0] as Message), /^p+\n\[… left out here: \d+ characters …\]\np+$/);
    assert.ok(result.tokensAfter.tokens > 9_500 && result.tokensAfter.tokens <= 10_000);
    assert.equal(result.shortenedMessages, 1);
  });

  it("shortens a newest message over the limit in its middle, and says so", async () => {
    const paste = `begin ${"x".repeat(300_000)} end`;
    const messages = [...turns(2, 1_000), user("u9", paste)];
    const result = await cut({ messages, limits: { maxTokens: 10_000 } });
    assert.deepEqual(ids(result.messages), ["u9"]);
    const [message = ""] = result.messages.map(words);
    assert.match(message, /^begin x+\n\[… left out here: 29\d{4} characters …\]\nx+ end$/);
    assert.ok(message.length > 9_800 && message.length <= 10_000);
  });

  it("keeps the first and the last parts of a newest answer with many parts", async () => {
    const parts = Array.from({ length: 200 }, (_, n) => call(`c${n}`, { output: "r".repeat(2_000) }));
    const image = file("image/png", "data:image/png;base64,AAAA");
    const newest = agent("a1", {}, "I begin.", ...parts.slice(0, 100), image, ...parts.slice(100), "I end.");
    const result = await cut({
      messages: [user("u1", "Go."), newest],
      limits: { maxTokens: 20_000, maxToolResultChars: 1_000 },
    });
    assert.deepEqual(ids(result.messages), ["u1", "a1"]);
    const kept = result.messages[1] as Message;
    const calls = kept.parts.flatMap((part) => (part.type === "tool" ? [part.callID] : []));
    assert.deepEqual(
      result.shortened.map(({ callID }) => callID),
      calls,
    );
    assert.match(
      words(kept),
      /^I begin\.\nr+\n[^]*\[… left out here: 18\d tool calls, 1 file …\][^]*I end\.$/,
    );
    assert.ok(result.tokensAfter.tokens <= 20_000);
  });

  it("keeps a compaction's summary at the front when messages are removed", async () => {
    const summary = [
      user("k1", "What did we do so far?"),
      agent("s1", { summary: true }, `Summary ${"s".repeat(500)}`),
    ];
    const messages = [...summary, ...turns(10, 1_000)];
    const result = await cut({ messages, limits: { maxTokens: 3_000 } });
    assert.deepEqual(ids(result.messages), ["k1", "s1", "u9", "a9"]);
    assert.deepEqual(result.messages.slice(0, 2), summary);
  });

  it("keeps it at the front of a fork of a fork, too, in which it is an ordinary answer", async () => {
    const { messages: inherited } = inheritedHistory([
      user("k1", mark("compaction")),
      agent("s1", { parentID: "k1", summary: true }, `Summary ${"s".repeat(500)}`),
      ...turns(2, 1_000),
    ]);
    // The server keeps no summaries of messages that are written to it.
    const written = inherited.map(({ info, parts }): Message =>
      info.role === "user" ? { info, parts } : { info: { ...info, summary: false }, parts },
    );
    const { messages } = inheritedHistory([...written, ...turns(10, 1_000)]);
    const result = await cut({ messages, limits: { maxTokens: 3_000 } });
    assert.deepEqual(ids(result.messages), ["k1", "s1", "u9", "a9"]);
  });

  it("shortens a summary only if it takes more than the newest messages leave", async () => {
    const summary = [user("k1", "?"), agent("s1", { summary: true }, "s".repeat(20_000))];
    const result = await cut({ messages: [...summary, ...turns(1, 1_000)], limits: { maxTokens: 10_000 } });
    assert.deepEqual(ids(result.messages), ["k1", "s1", "u0", "a0"]);
    assert.ok(result.tokensAfter.tokens > 9_500 && result.tokensAfter.tokens <= 10_000);
    const alone = await cut({ messages: summary, limits: { maxTokens: 10_000 } });
    assert.deepEqual(ids(alone.messages), ["k1", "s1"]);
    assert.ok(alone.tokensAfter.tokens <= 10_000);
  });

  it("counts from the newest message on, and not what is removed anyway", async () => {
    const counter = new ByteCounter();
    const messages = turns(1_000, 5_000);
    const result = await cut({ messages, limits: { maxTokens: 100_000 }, counter });
    assert.equal(result.messages.length, 20);
    assert.ok(counter.asked.length < 100, `${counter.asked.length} texts`);
    assert.ok(result.tokensBefore.isEstimate);
    assert.ok(!result.tokensAfter.isEstimate);
  });

  it("counts everything if everything fits", async () => {
    const result = await cut({
      messages: turns(100, 5_000),
      limits: { maxTokens: 300_000 },
      counter: new ByteCounter(4),
    });
    assert.deepEqual(result.tokensBefore, { tokens: 250_000, isEstimate: false });
  });

  it("counts an image by its cost for a model, not by its characters", async () => {
    const image = file("image/png", `data:image/png;base64,${"A".repeat(400_000)}`);
    const pdf = file("application/pdf", `data:application/pdf;base64,${"A".repeat(400_000)}`);
    const result = await cut({ messages: [user("u1", "Look.", image)], limits: { maxTokens: 2_000 } });
    assert.equal(result.messages[0]?.parts[1]?.type, "file");
    const large = await cut({ messages: [user("u1", "Look.", pdf)], limits: { maxTokens: 2_000 } });
    assert.equal(words(large.messages[0] as Message), "Look.\n[… left out here: 1 file …]");
  });

  it("leaves room for older messages beside a document of the maximum size", async () => {
    const pdf = file("application/pdf", `data:application/pdf;base64,${"A".repeat(MAX_FILE_URL - 28)}`);
    const messages = [...turns(5, 1_000), user("u9", "Look.", pdf), answer("a9", "a", 1_000)];
    const source = inheritedHistory(messages);
    const result = await cutHistory(source, LIMITS, new ByteCounter());
    assert.deepEqual(result.messages, messages);
  });

  it("counts the images that tools returned", async () => {
    const attachments = [{ mime: "image/png", url: `data:image/png;base64,${"A".repeat(4_000)}` }];
    const messages = [...turns(2, 1_000), user("u9", "Go."), agent("a9", {}, call("c", { attachments }))];
    const result = await cut({ messages, limits: { maxTokens: 4_500 } });
    assert.deepEqual(ids(result.messages), ["u1", "a1", "u9", "a9"]);
  });

  it("applies to many files", async () => {
    const images = Array.from({ length: 100 }, () => file("image/png", "data:image/png;base64,AAAA"));
    const messages = [
      user("u1", "old", ...images),
      agent("a1", {}, "Seen."),
      user("u2", ...images.slice(0, 50)),
    ];
    assert.deepEqual(ids((await cut({ messages })).messages), ["u2"]);
  });

  for (const [name, paste] of Object.entries({
    "16,000 times one letter": "a".repeat(16_000),
    emoji: "👩‍👩‍👧‍👦😀".repeat(2_000),
    "right-to-left text": "شكرا لك على المساعدة ".repeat(800),
    "Chinese text": "深入研究代码".repeat(3_000),
    "text that grows denser": `${"a ".repeat(8_000)}${"深".repeat(8_000)}`,
  }))
    it(`is met by shortening ${name}`, async () => {
      const counter = new ByteCounter();
      const result = await cut({ messages: [user("u1", paste)], limits: { maxTokens: 4_000 }, counter });
      const [message = ""] = result.messages.map(words);
      assert.ok(counter.total(result.messages) <= 4_000);
      assert.ok(counter.total(result.messages) > 2_000, "keeps what there is room for");
      assert.doesNotMatch(message, HALF_PAIR);
    });

  it("is met by text with nearly all tokens at the beginning", async () => {
    const tokens = (text: string): number => {
      const dense = text.split("深").length - 1;
      return 3 * dense + Math.ceil((text.length - dense) / 10_000);
    };
    const messages = [user("u1", "深".repeat(130) + " ".repeat(1_000_000))];
    const limits = { ...LIMITS, maxTokens: 400 };
    const result = await cutHistory(history(...messages), limits, {
      count: async (texts) => texts.map(tokens),
    });
    const [message = ""] = result.messages.map(words);
    assert.ok(tokens(message) <= 400 && message.startsWith("深".repeat(50)));
  });

  it("must be a number greater than 0, as the limit of results", async () => {
    for (const value of [0, -1, NaN, "100", undefined])
      for (const name of ["maxTokens", "maxToolResultChars"])
        await assert.rejects(cut({ messages: [], limits: { [name]: value } }), {
          name: "Refusal",
          code: "invalid-argument",
          message: `The limit fork.${name} must be a number greater than 0. Change it in the settings.`,
        });
  });

  it("passes the caller's signal to the counter", async () => {
    const { signal } = new AbortController();
    let passed: unknown;
    await cutHistory(
      history(...turns(5, 1_000)),
      { ...LIMITS, maxTokens: 100 },
      {
        count: async (texts, given) => {
          passed = given;
          return texts.map(({ length }) => length);
        },
      },
      signal,
    );
    assert.equal(passed, signal);
  });
});

describe("a long conversation, inherited and shortened", () => {
  it("keeps the open call at its end", async () => {
    const source = inheritedHistory([
      ...turns(50, 3_000),
      user("u", "Fork yourself."),
      agent("a", { completed: undefined }, call("c", { status: "running" }, "asyncagents_task")),
    ]);
    const result = await cutHistory(source, { ...LIMITS, maxTokens: 10_000 }, new ByteCounter());
    assert.equal(result.messages[0]?.info.role, "user");
    assert.equal(result.messages.at(-1)?.parts[0]?.type, "tool");
    assert.match(resultIn(result.messages.at(-1)?.parts[0]), /^In progress/);
  });
});
