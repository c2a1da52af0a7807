import assert from "node:assert/strict";
import { TranscriptMessages } from "../../../src/engine/transcript-messages.ts";
import { answer, prompt, textPart, toolPart } from "./builders.ts";

describe("The messages of a conversation", () => {
  let messages: TranscriptMessages;

  beforeEach(() => {
    messages = new TranscriptMessages();
    messages.apply({ type: "reset", messages: [prompt(), answer({}, [textPart("Hel")])] });
  });

  const shown = (): readonly (readonly [string, ...string[]])[] =>
    messages
      .all()
      .map(({ info, parts }) => [info.id, ...parts.map((part) => ("text" in part ? part.text : part.id))]);

  it("are none at first", () => {
    assert.deepEqual(new TranscriptMessages().all(), []);
  });

  it("are replaced by a reset", () => {
    assert.deepEqual(shown(), [
      ["msg_prompt", "Do it."],
      ["msg_answer", "Hel"],
    ]);
    messages.apply({ type: "reset", messages: [answer()] });
    assert.deepEqual(shown(), [["msg_answer"]]);
    assert.deepEqual([messages.has("msg_answer"), messages.has("msg_prompt")], [true, false]);
  });

  it("are added at the end or replaced in their place, and keep their parts", () => {
    assert.ok(messages.apply({ type: "message", info: answer({ id: "msg_next" }).info }));
    assert.ok(messages.apply({ type: "message", info: answer({ completed: 2_000 }).info }));
    assert.deepEqual(shown(), [["msg_prompt", "Do it."], ["msg_answer", "Hel"], ["msg_next"]]);
    const { info } = messages.all()[1] ?? assert.fail();
    assert.ok(info.role === "assistant" && info.completed === 2_000);
  });

  it("grow with streamed text, if its part is known and has text", () => {
    const place = { type: "text", messageID: "msg_answer" } as const;
    assert.ok(messages.apply({ ...place, partID: "prt_text", delta: "lo" }));
    assert.ok(messages.apply({ type: "part", part: toolPart("prt_tool", "bash", "running") }));
    assert.equal(messages.apply({ ...place, partID: "prt_tool", delta: "lo" }), false);
    assert.equal(messages.apply({ ...place, partID: "prt_other", delta: "lo" }), false);
    assert.equal(
      messages.apply({ ...place, messageID: "msg_other", partID: "prt_text", delta: "lo" }),
      false,
    );
    assert.deepEqual(shown(), [
      ["msg_prompt", "Do it."],
      ["msg_answer", "Hello", "prt_tool"],
    ]);
  });

  it("may get parts before they are known themselves", () => {
    messages.apply({ type: "part", part: { ...textPart("Early"), messageID: "msg_next" } });
    assert.ok(!messages.has("msg_next"));
    messages.apply({ type: "message", info: answer({ id: "msg_next" }).info });
    assert.deepEqual(shown().at(-1), ["msg_next", "Early"]);
  });

  it("and their parts can be removed", () => {
    messages.apply({ type: "part-removed", messageID: "msg_answer", partID: "prt_text" });
    assert.deepEqual(shown()[1], ["msg_answer"]);
    messages.apply({ type: "message-removed", messageID: "msg_prompt" });
    assert.deepEqual(shown(), [["msg_answer"]]);
    messages.apply({ type: "message", info: prompt().info });
    assert.deepEqual(shown()[1], ["msg_prompt"]);
  });

  it("let all their parts be changed", () => {
    messages.changeParts((part) => ("text" in part ? { ...part, text: part.text.toUpperCase() } : part));
    assert.deepEqual(shown(), [
      ["msg_prompt", "DO IT."],
      ["msg_answer", "HEL"],
    ]);
  });
});
