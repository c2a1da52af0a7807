import assert from "node:assert/strict";
import { shortenMessage } from "../../../../src/engine/fork/shorten-message.ts";
import { TokenScales } from "../../../../src/engine/fork/token-scales.ts";
import type { Message } from "../../../../src/engine/server-model.ts";
import type { TokenCounter } from "../../../../src/engine/token-counter.ts";
import { agent, ByteCounter, call, file, text, user } from "./conversation.ts";

describe("A message without its middle", () => {
  const scales = (): TokenScales => new TokenScales(new ByteCounter());
  const shorten = async (message: Message, maxTokens: number): Promise<readonly string[]> =>
    (await shortenMessage(message, maxTokens, scales())).parts.map((part) =>
      part.type === "text" ? part.text : part.type === "tool" ? part.callID : part.type,
    );

  it("begins and ends as before, with a note between them if there is room for one", async () => {
    const message = user("u1", `${"a".repeat(500)}${"z".repeat(500)}`);
    assert.deepEqual(await shorten(message, 290), [
      `${"a".repeat(100)}\n[… left out here: 800 characters …]\n${"z".repeat(100)}`,
    ]);
    assert.deepEqual(await shorten(message, 181), [
      `${"a".repeat(46)}\n[… left out here: 909 characters …]\n${"z".repeat(45)}`,
    ]);
    assert.deepEqual(await shorten(message, 180), [`${"a".repeat(90)}${"z".repeat(90)}`]);
    assert.deepEqual(await shorten(message, 1), ["a"]);
    assert.deepEqual(await shorten(message, 0), []);
  });

  it("keeps the parts at its ends that fit, and says what kinds are missing", async () => {
    const message = agent(
      "a1",
      {},
      "b".repeat(100),
      "c".repeat(300),
      call("one", { output: "o".repeat(300) }),
      call("two", { output: "o".repeat(300) }),
      file("image/png", "data:,"),
      "x".repeat(300),
      "y".repeat(100),
    );
    assert.deepEqual(await shorten(message, 390), [
      "b".repeat(100),
      `${"c".repeat(50)}\n[… left out here: 500 characters, 2 tool calls, 1 file …]\n${"x".repeat(50)}`,
      "y".repeat(100),
    ]);
  });

  it("keeps a part that fits exactly, and the whole of a message that does", async () => {
    const message = user("u1", "a".repeat(50), "m".repeat(300), "z".repeat(50));
    assert.deepEqual(await shorten(message, 100), ["a".repeat(50), "z".repeat(50)]);
    assert.deepEqual(await shorten(message, 99), ["a".repeat(50), `${"z".repeat(49)}`]);
    assert.deepEqual(await shorten(user("u1", "a".repeat(100)), 100), ["a".repeat(100)]);
  });

  it("has the note in place of a call, with its IDs, as hidden text", async () => {
    const message = agent("a1", {}, call("one", { output: "o".repeat(900) }));
    const { parts } = await shortenMessage(message, 200, scales());
    assert.deepEqual(parts, [
      {
        id: message.parts[0]?.id,
        sessionID: "ses_source",
        messageID: "a1",
        type: "text",
        text: "[… left out here: 1 tool call …]",
        synthetic: true,
      },
    ]);
    // Without room for it, nothing is left.
    assert.deepEqual(await shorten(message, 100), []);
    assert.deepEqual((await shortenMessage(user("u1"), 200, scales())).parts, []);
  });

  it("keeps what else is known of a text", async () => {
    const { parts } = await shortenMessage(
      user("u1", text("a".repeat(900), { id: "prt_own", synthetic: true, metadata: { mark: 1 } })),
      100,
      scales(),
    );
    assert.deepEqual(parts, [
      {
        id: "prt_own",
        sessionID: "ses_source",
        messageID: "u1",
        type: "text",
        text: "a".repeat(100),
        synthetic: true,
        metadata: { mark: 1 },
      },
    ]);
  });

  it("is cut to what always fits if four lengths were tried in vain, as all tokens are at its beginning", async () => {
    const counter: TokenCounter = {
      count: async (texts) => texts.map((text) => 3 * text.replaceAll("a", "").length),
    };
    const message = user("u1", `${"深".repeat(100)}${"a".repeat(30_000)}`);
    const { parts } = await shortenMessage(message, 100, new TokenScales(counter));
    assert.deepEqual(
      parts.map((part) => part.type === "text" && part.text),
      // Each end may have 50 tokens; the fourth length, 17, has 51.
      [`${"深".repeat(16)}${"a".repeat(5_016)}`],
    );
  });
});
