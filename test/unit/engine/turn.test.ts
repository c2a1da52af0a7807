import assert from "node:assert/strict";
import { ABORTED } from "../../../src/engine/server-model.ts";
import { answerText, readTurn, STEERING_MARK, TURN_WINDOW } from "../../../src/engine/turn.ts";
import { answer, prompt, textPart, toolPart } from "./builders.ts";

const read = (...messages: Parameters<typeof readTurn>[0]): ReturnType<typeof readTurn> =>
  readTurn(messages, "msg_prompt");

describe("the state of a turn", () => {
  it("unseen if the server does not have the prompt", () => {
    assert.equal(read().kind, "unseen");
    assert.equal(read(prompt("msg_other"), answer({ completed: 2_000, finish: "end" })).kind, "unseen");
  });

  it("unseen if the server does not have all of the prompt", () => {
    const { info } = prompt();
    const hidden = textPart("Background.", { synthetic: true });
    assert.equal(read({ info, parts: [] }).kind, "unseen");
    assert.equal(read({ info, parts: [hidden] }).kind, "unseen");
  });

  it("unanswered if nothing follows the prompt, whatever came before it", () => {
    assert.equal(read(answer({ completed: 500, finish: "end" }), prompt()).kind, "unanswered");
  });

  it("open while the last answer is not completed, with a mark that changes as it grows", () => {
    const first = read(prompt(), answer());
    const later = read(prompt(), answer({}, [toolPart("a", "bash", "running")]));
    assert.equal(first.kind, "open");
    assert.ok(first.kind === "open" && later.kind === "open" && first.mark !== later.mark);
  });

  it("completed by the last answer, at the time it was completed", () => {
    const turn = read(
      prompt(),
      answer({ id: "msg_1", completed: 1_500, finish: "tools" }),
      answer({ id: "msg_2", completed: 2_000, finish: "end" }),
    );
    assert.deepEqual(turn, { kind: "completed", messageID: "msg_2", at: 2_000, answer: "" });
  });

  it("completed by the last answer with a text, if nothing was written after its last tool call", () => {
    const turn = read(
      prompt(),
      answer({ id: "msg_1", completed: 1_500, finish: "tools" }, [textPart("The report.")]),
      answer({ id: "msg_2", completed: 2_000, finish: "end" }),
    );
    assert.deepEqual(turn, { kind: "completed", messageID: "msg_1", at: 2_000, answer: "The report." });
    const summary = answer({ id: "msg_3", completed: 2_500, finish: "end", summary: true });
    const last = answer({ id: "msg_2", completed: 2_000, finish: "end" });
    const before = (change: Parameters<typeof answer>[0]) =>
      answer({ id: "msg_1", completed: 1_500, finish: "tools", ...change }, [textPart("Not the report.")]);
    const compacted = read(prompt(), before({}), last, summary);
    assert.ok(compacted.kind === "compacted" && compacted.answer === "Not the report.");
    const error = { name: "APIError", message: "refused" };
    for (const earlier of [
      [before({}), answer({ id: "msg_0", completed: 1_600, finish: "tools" })],
      [before({ finish: "end" })],
      [before({ error })],
    ]) {
      const turn = read(prompt(), ...earlier, last);
      assert.deepEqual(turn, { kind: "completed", messageID: "msg_2", at: 2_000, answer: "" });
    }
  });

  it("completed by an answer that was cut off, which its text says", () => {
    const cut = "[The answer ends here: its model reached a limit, or its provider stopped it.]";
    for (const [parts, text] of [
      [[textPart("Half of")], `Half of\n\n${cut}`],
      [[], ""],
    ] as const) {
      const turn = read(prompt(), answer({ completed: 2_000, finish: "cut" }, [...parts]));
      assert.deepEqual(turn, { kind: "completed", messageID: "msg_answer", at: 2_000, answer: text });
    }
  });

  it("completed even if a message was queued after the answer", () => {
    assert.equal(
      read(prompt(), answer({ completed: 2_000, finish: "end" }), prompt("msg_queued")).kind,
      "completed",
    );
  });

  it("completed in a turn so long that its prompt is no longer read", () => {
    const steps = Array.from({ length: TURN_WINDOW }, (_, i) =>
      answer({ id: `msg_${i}`, completed: i, finish: "tools" }),
    );
    steps[TURN_WINDOW - 1] = answer({ id: "msg_last", completed: 99, finish: "end" });
    assert.deepEqual(read(...steps), { kind: "completed", messageID: "msg_last", at: 99, answer: "" });
  });

  it("aborted after the server's abort error, or an end with neither error nor reason", () => {
    const error = { name: ABORTED, message: "Aborted" };
    assert.equal(read(prompt(), answer({ completed: 2_000, error })).kind, "aborted");
    assert.equal(read(prompt(), answer({ completed: 2_000 })).kind, "aborted");
  });

  it("failed with the server's error", () => {
    const error = { name: "APIError", message: "refused" };
    assert.deepEqual(read(prompt(), answer({ completed: 2_000, error })), {
      kind: "failed",
      messageID: "msg_answer",
      at: 2_000,
      error,
    });
  });

  it("between steps after tool calls, with the tool whose permission was rejected", () => {
    const refused = toolPart("a", "bash", "error", { refused: "by-user" });
    const turn = read(prompt(), answer({ completed: 2_000, finish: "tools" }, [refused]));
    assert.deepEqual(turn, { kind: "between-steps", messageID: "msg_answer", at: 2_000, refused: "bash" });
  });

  it("compacted if a summary follows the answer, and the summary is not the answer", () => {
    const turn = read(
      prompt(),
      answer({ id: "msg_1", completed: 1_500, finish: "end" }),
      answer({ id: "msg_2", completed: 2_000, finish: "end", summary: true }),
    );
    assert.deepEqual(turn, { kind: "compacted", answer: "", messageID: "msg_1", at: 2_000 });
  });

  describe("with a message that steers the task", () => {
    const { info, parts } = prompt("msg_steering");
    const metadata = { [STEERING_MARK]: true };
    const steering = {
      info,
      parts: parts.flatMap((part) => (part.type === "text" ? [{ ...part, metadata }] : [])),
    };
    const unanswered = { kind: "unanswered", asked: "msg_steering", at: 2_000 };

    it("unanswered until a model was asked with the message, even if it was stored before the answer", () => {
      const before = answer({ completed: 2_000, finish: "end" });
      assert.deepEqual(read(prompt(), before, steering), unanswered);
      assert.deepEqual(read(prompt(), steering, before), unanswered);
      assert.deepEqual(read(prompt(), answer({ completed: 2_000, finish: "tools" }), steering), unanswered);
    });

    it("completed by the answer to the message or to a later one", () => {
      for (const parentID of ["msg_steering", "msg_later"]) {
        const last = answer({ id: "msg_2", parentID, completed: 2_000, finish: "end" });
        assert.equal(read(prompt(), steering, prompt("msg_later"), last).kind, "completed");
      }
    });

    it("open, failed or aborted as without it", () => {
      const error = { name: "APIError", message: "no" };
      assert.equal(read(prompt(), answer(), steering).kind, "open");
      assert.equal(read(prompt(), answer({ completed: 2_000, error }), steering).kind, "failed");
      assert.equal(read(prompt(), answer({ completed: 2_000 }), steering).kind, "aborted");
    });

    it("not affected by one of an earlier turn", () => {
      const last = answer({ id: "msg_2", completed: 2_000, finish: "end" });
      assert.equal(read(steering, prompt(), last).kind, "completed");
    });
  });

  it("the text of an answer leaves out hidden and empty parts", () => {
    const parts = [
      textPart("One."),
      textPart("hidden", { synthetic: true }),
      toolPart("a", "bash", "completed"),
      textPart(" "),
      textPart("Two."),
    ];
    assert.equal(answerText(answer({}, parts)), "One.\n\nTwo.");
  });
});
