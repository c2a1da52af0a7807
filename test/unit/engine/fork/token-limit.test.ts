import assert from "node:assert/strict";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { ForkBuilder } from "../../../../src/engine/fork/builder.ts";
import type { ForkSettings } from "../../../../src/engine/settings.ts";
import type { Message, Part } from "../../../../src/engine/server-model.ts";
import type { TokenCounter } from "../../../../src/engine/token-counter.ts";
import { TextTokens } from "../../../../src/tokens/text-tokens.ts";
import { loadVocabulary } from "../../../../src/tokens/vocabulary.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { MemoryServer } from "../../../support/memory-server.ts";
import { record } from "../builders.ts";
import { agent, call, inOrder, resultIn, text, user } from "./conversation.ts";

describe("the token limit of a fork, with the real tokenizer", function () {
  this.timeout(60_000);
  let counter: TokenCounter;
  let exact: (text: string) => number;

  before(() => {
    const tokens = new TextTokens(loadVocabulary());
    counter = { count: (texts) => Promise.resolve(texts.map((text) => tokens.count(text))) };
    const reference = new Tiktoken(o200k);
    exact = (text) => reference.encode(text, [], []).length;
  });

  /** Everything that the child receives before its prompt. */
  async function given(
    messages: readonly Message[],
    { hasReplay = true, ...limits }: Partial<ForkSettings> & { readonly hasReplay?: boolean } = {},
  ): Promise<{ readonly texts: readonly string[]; readonly messages: number }> {
    const server = new MemoryServer();
    const source = await server.createSession({ title: "Source", agent: "build" });
    const child = await server.createSession({ title: "Child", agent: "build" });
    await server.writeHistory(source.id, messages);
    server.canWriteHistory = () => Promise.resolve(hasReplay);
    const fork = {
      maxToolResultChars: 1_500,
      maxTokens: 100_000,
      strategy: "replay",
      ...limits,
    } as const;
    const clock = new ManualClock();
    const builder = new ForkBuilder(
      { server, tokens: counter, clock, random: Math.random, settings: () => ({ fork }) },
      { session: () => source },
    );
    const prepared = await builder.prepare({ sourceSessionID: source.id });
    await builder.write(record({ id: child.id, agent: "build" }), prepared);
    const written = await server.messages(child.id);
    const texts = [prepared.preamble, ...written.flatMap(({ parts }) => parts.flatMap(textsOf))];
    return { texts, messages: prepared.cut.messages.length };
  }

  function textsOf(part: Part): readonly string[] {
    if (part.type === "text") return [part.text];
    return part.type === "tool" ? [part.tool, JSON.stringify(part.state.input), resultIn(part)] : [];
  }

  const sum = (texts: readonly string[]): number => texts.reduce((all, one) => all + exact(one), 0);

  /** Turns of a prompt and three short answers, of about 30 tokens each. */
  const shortMessages = (count: number): readonly Message[] =>
    inOrder(
      ...Array.from({ length: count }, (_, at) =>
        at % 4 === 0
          ? user(`u${at}`, `Look at part ${at} of the parser and say what is wrong with it, if anything is.`)
          : agent(
              `a${at}`,
              {},
              `Part ${at} throws in its first function.`,
              call(`call_${at}`, { output: `${at} lines` }),
            ),
      ),
    );

  for (const [way, hasReplay] of [
    ["replay", true],
    ["text", false],
  ] as const) {
    for (const count of [4_000, 20_000])
      it(`by ${way}: applies to all that is sent of ${count} messages, and is used`, async () => {
        const { texts, messages } = await given(shortMessages(count), { hasReplay });
        const tokens = sum(texts);
        assert.ok(messages < count);
        assert.ok(tokens <= 100_000, `${tokens} tokens`);
        assert.ok(tokens > 90_000, `${tokens} tokens`);
      });

    it(`by ${way}: applies to lines that are quoted because they look like labels`, async () => {
      const messages = Array.from({ length: 300 }, (_, at) => user(`u${at}`, "User: I\n".repeat(100)));
      const { texts } = await given(inOrder(...messages), { hasReplay });
      const tokens = sum(texts);
      assert.ok(tokens > 90_000 && tokens <= 100_000, `${tokens} tokens`);
    });

    it(`by ${way}: applies to one message that exceeds it`, async () => {
      const parts = Array.from({ length: 400 }, (_, at) => text(`Note ${at}: ${"lorem ipsum ".repeat(200)}`));
      const { texts } = await given([user("u", ...parts)], { hasReplay });
      const tokens = sum(texts);
      assert.ok(tokens > 90_000 && tokens <= 100_000, `${tokens} tokens`);
    });

    for (const maxTokens of [600, 2_000, 6_000])
      it(`by ${way}: applies if it is only ${maxTokens}`, async () => {
        const { texts } = await given(shortMessages(500), { hasReplay, maxTokens });
        const tokens = sum(texts);
        assert.ok(tokens <= maxTokens, `${tokens} tokens`);
      });
  }
});
