import assert from "node:assert/strict";
import fc from "fast-check";
import { casesOf } from "../../../support/cases.ts";
import { cutHistory, type CutHistory } from "../../../../src/engine/fork/cut.ts";
import type { Message, ToolPart } from "../../../../src/engine/server-model.ts";
import { agent, ByteCounter, call, HALF_PAIR, history, text, user } from "./conversation.ts";

const words = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 80 }),
  fc
    .tuple(fc.constantFrom("a", "word ", "😀", "深", "\n", "שלום "), fc.nat({ max: 300 }))
    .map(([unit, count]) => unit.repeat(count)),
);

const calls = fc
  .record({
    id: fc.uuid(),
    output: words,
    arg: words,
    failed: fc.boolean(),
    tool: fc.constantFrom("read", "bash"),
  })
  .map(({ id, output, arg, failed, tool }) =>
    call(id, { input: { arg }, ...(failed ? { error: output } : { output }) }, tool),
  );

const turn = fc.record({
  prompt: fc.array(words, { minLength: 1, maxLength: 2 }),
  answers: fc.array(
    fc.array(
      fc.oneof(
        words.map((part) => text(part)),
        calls,
      ),
      { minLength: 1, maxLength: 4 },
    ),
    {
      maxLength: 5,
    },
  ),
});

/** Turns of a prompt and any number of answers, optionally after a compaction's summary. */
const conversations = fc
  .record({ turns: fc.array(turn, { maxLength: 6 }), summary: fc.option(words) })
  .map(({ turns, summary }) => {
    const messages: Message[] = [];
    const id = (): string => `msg_${messages.length}`;
    if (summary !== null) {
      messages.push(user(id(), "What did we do so far?"));
      messages.push(agent(id(), { summary: true }, summary));
    }
    for (const { prompt, answers } of turns) {
      messages.push(user(id(), ...prompt));
      for (const parts of answers) messages.push(agent(id(), {}, ...parts));
    }
    return messages;
  });

const cases = fc.record({
  messages: conversations,
  maxTokens: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 300, max: 4_000 })),
  maxToolResultChars: fc.integer({ min: 1, max: 200 }),
  bytesPerToken: fc.constantFrom(1, 3),
});

interface Cut {
  readonly before: readonly Message[];
  readonly limits: { readonly maxTokens: number; readonly maxToolResultChars: number };
  readonly counter: ByteCounter;
  readonly cut: CutHistory;
}

/** Checks the claim for many conversations. */
function always(claim: (cut: Cut) => void | Promise<void>): Promise<void> {
  return fc.assert(
    fc.asyncProperty(cases, async ({ messages, bytesPerToken, ...limits }) => {
      const counter = new ByteCounter(bytesPerToken);
      const cut = await cutHistory(history(...messages), limits, counter);
      await claim({ before: messages, limits, counter, cut });
    }),
    { numRuns: casesOf(400), seed: 20_240_607 },
  );
}

describe("a shortened history, for any conversation and limits", () => {
  it("is within the limit", () =>
    always(({ cut, counter, limits }) => {
      assert.ok(counter.total(cut.messages) <= limits.maxTokens);
      assert.ok(cut.tokensAfter.tokens <= limits.maxTokens);
    }));

  it("leaves room for what is sent with it, even if that changes with the cut", () =>
    always(async ({ before, counter, limits }) => {
      const opening = ({ removed }: CutHistory): string =>
        `${removed.length} removed `.repeat(removed.length);
      const cut = await cutHistory(history(...before), limits, counter, undefined, opening);
      const beside = counter.tokens(opening(cut));
      assert.ok(cut.tokensAfter.tokens <= Math.max(0, limits.maxTokens - beside));
    }));

  it("is the end of the conversation, apart from a summary and the prompt of the first answer", () =>
    always(({ before, cut }) => {
      const positions = cut.messages.map(({ info }) =>
        before.findIndex((message) => message.info.id === info.id),
      );
      const gaps = positions.filter(
        (position, index) => position + 1 !== (positions[index + 1] ?? before.length),
      );
      assert.ok(gaps.length <= 2, String(positions));
      if (before.length > 0) assert.equal(positions.at(-1), before.length - 1);
      const framed = positions.filter((position) => position <= (gaps.at(-1) ?? -1));
      for (const position of framed) assert.ok(isFrame(before, position), String(positions));
      assert.equal(cut.messages.length + cut.removed.length, before.length);
    }));

  it("does not begin with an answer whose prompt was removed", () =>
    always(({ before, cut }) => {
      const first = cut.messages[0];
      if (first) assert.equal(first.info.role, before[0]?.info.role);
    }));

  it("keeps tool and arguments of each call, and loses no call if no message was shortened", () =>
    always(({ before, cut }) => {
      const known = new Map(before.flatMap(callsOf).map((part) => [part.callID, part]));
      const kept = cut.messages.flatMap(callsOf);
      for (const { callID, tool, state } of kept) {
        const original = known.get(callID);
        assert.deepEqual([tool, state.input], [original?.tool, original?.state.input]);
      }
      const all = [...cut.removed.flatMap(callsOf), ...kept].map(({ callID }) => callID);
      if (cut.shortenedMessages === 0) assert.deepEqual(new Set(all), new Set(known.keys()));
    }));

  it("does not change when it is shortened again", () =>
    always(async ({ cut, limits, counter }) => {
      const again = await cutHistory(history(...cut.messages), limits, counter);
      assert.deepEqual(again.messages, cut.messages);
      assert.deepEqual([again.removed, again.shortened, again.shortenedMessages], [[], [], 0]);
    }));

  it("splits no character", () =>
    always(({ cut }) => {
      assert.doesNotMatch(JSON.stringify(cut.messages), HALF_PAIR);
      for (const message of cut.messages)
        for (const part of message.parts) if (part.type === "text") assert.doesNotMatch(part.text, HALF_PAIR);
    }));

  it("does not copy unchanged messages", () =>
    always(({ before, cut }) => {
      const changed = new Set(cut.shortened.map(({ messageID }) => messageID));
      if (cut.shortenedMessages > 0) return;
      for (const message of cut.messages)
        assert.equal(before.includes(message), !changed.has(message.info.id), message.info.id);
    }));
});

function callsOf({ parts }: Message): ToolPart[] {
  return parts.filter((part) => part.type === "tool");
}

/** A summary with its request, or a prompt. */
function isFrame(messages: readonly Message[], position: number): boolean {
  const info = messages[position]?.info;
  return info?.role === "user" || (position === 1 && info?.summary === true);
}
