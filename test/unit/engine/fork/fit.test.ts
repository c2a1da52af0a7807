import assert from "node:assert/strict";
import { fitMessages } from "../../../../src/engine/fork/fit.ts";
import { TokenScales } from "../../../../src/engine/fork/token-scales.ts";
import type { Message } from "../../../../src/engine/server-model.ts";
import { agent, ByteCounter, ids, user } from "./conversation.ts";

describe("Fitting messages into a limit", () => {
  let counter: ByteCounter;

  beforeEach(() => (counter = new ByteCounter()));

  const fit = (messages: readonly Message[], maxTokens: number) =>
    fitMessages(messages, maxTokens, new TokenScales(counter));

  /** A message with this many tokens, including its label and the lines between messages. */
  const prompt = (id: string, tokens: number): Message => user(id, "p".repeat(tokens - "User: \n\n".length));
  const answer = (id: string, tokens: number, facts: Parameters<typeof agent>[1] = {}): Message =>
    agent(id, facts, "a".repeat(tokens - "Agent: \n\n".length));
  const answers = (count: number, tokens: number): Message[] =>
    Array.from({ length: count }, (_, n) => answer(`a${n}`, tokens));
  const tokens = async (messages: readonly Message[]): Promise<readonly number[]> => {
    const scales = new TokenScales(counter);
    await scales.count(messages);
    return messages.map((message) => scales.tokens(message));
  };

  it("keeps all of them up to the limit, and shortens or removes some for one token more", async () => {
    const messages = [prompt("u", 100), answer("a", 100), prompt("n", 100)];
    assert.equal((await fit(messages, 300)).messages, messages);
    // The prompt of the first answer may take up to a quarter.
    const shortened = await fit(messages, 299);
    assert.deepEqual([ids(shortened.messages), shortened.shortenedMessages], [["u", "a", "n"], 1]);
    const { messages: kept, removed } = await fit(messages, 265);
    assert.deepEqual([ids(kept), ids(removed)], [["n"], ["u", "a"]]);
  });

  it("leaves room for a summary at the front", async () => {
    const summary = [prompt("request", 100), answer("summary", 100, { summary: true })];
    const { messages, removed, shortenedMessages } = await fit(
      [...summary, prompt("u", 100), ...answers(10, 100)],
      1_000,
    );
    // 200 for the summary, and 100 for the prompt of the first answer.
    assert.deepEqual(ids(messages), ["request", "summary", "u", "a3", "a4", "a5", "a6", "a7", "a8", "a9"]);
    assert.deepEqual([ids(removed), shortenedMessages], [["a0", "a1", "a2"], 0]);
  });

  it("takes for a summary only what the server wrote as one, after a request", async () => {
    for (const front of [
      [prompt("request", 100), answer("summary", 100)],
      [answer("first", 100), answer("summary", 100, { summary: true })],
    ]) {
      const { removed } = await fit([...front, prompt("u", 100), ...answers(5, 100)], 500);
      assert.deepEqual(ids(removed).slice(0, 2), ids(front));
    }
  });

  it("leaves a quarter of the limit to the prompt of a newest answer that is too long itself", async () => {
    const kept = await fit([prompt("u", 2_000), answer("a", 5_000)], 1_000);
    assert.deepEqual([ids(kept.messages), kept.shortenedMessages], [["u", "a"], 2]);
    const [first = 0, second = 0] = await tokens(kept.messages);
    assert.ok(first <= 250 && first >= 200, String(first));
    assert.ok(second <= 750 && second >= 700, String(second));
  });

  it("gives an older message what the newest ones leave", async () => {
    const { messages, shortenedMessages } = await fit([prompt("u", 700), answer("a", 400)], 1_000);
    assert.equal(shortenedMessages, 1);
    const [first = 0, second] = await tokens(messages);
    assert.equal(second, 400);
    assert.ok(first <= 600 && first >= 550, String(first));
  });

  it("keeps a newest message without its parts if there is no room at all for it", async () => {
    const { messages } = await fit([prompt("u", 100)], 3);
    assert.deepEqual([ids(messages), messages[0]?.parts], [["u"], []]);
  });

  it("counts a batch at a time, from the newest on, and no further than needed", async () => {
    const many = [prompt("u", 100), ...answers(3_000, 100)];
    await fit(many, 20_000);
    const counted = new Set(counter.asked).size;
    assert.ok(counter.calls <= 10, String(counter.calls));
    assert.ok(counter.asked.length < 2_000, `${counter.asked.length} of 3,001 (${counted} texts)`);
  });
});
