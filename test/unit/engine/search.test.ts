import assert from "node:assert/strict";
import { findHits } from "../../../src/engine/search.ts";
import { answer, prompt, textPart, toolPart } from "./builders.ts";

const PLACE = { sessionID: "ses_task", messageID: "msg_answer" };

describe("searching a conversation", () => {
  const text = (lines: string, id = "prt_text") => answer({}, [textPart(lines, { id })]);

  it("finds lines in any case and with any white space, the newest first", () => {
    const messages = [
      text("The lexer\nis slow.\nThe  LEXER is fixed.", "prt_1"),
      text("the lexer!", "prt_2"),
    ];
    assert.deepEqual(findHits(messages, " the lexer "), [
      { entryID: "prt_2", nth: 0, line: "the lexer!" },
      { entryID: "prt_1", nth: 1, line: "The  LEXER is fixed." },
      { entryID: "prt_1", nth: 0, line: "The lexer" },
    ]);
    assert.deepEqual(findHits(messages, "the lexer is"), [
      { entryID: "prt_1", nth: 1, line: "The  LEXER is fixed." },
      { entryID: "prt_1", nth: 0, line: "The lexer" },
    ]);
    assert.deepEqual(findHits(messages, "parser"), []);
    assert.deepEqual(findHits(messages, " "), []);
    assert.equal(findHits(messages, "(").length, 0);
  });

  it("lists a line once, and counts all matches before it", () => {
    assert.deepEqual(findHits([text("a a\na")], "a"), [
      { entryID: "prt_text", nth: 2, line: "a" },
      { entryID: "prt_text", nth: 0, line: "a a" },
    ]);
  });

  it("searches prompts, reasoning, tool calls, files and errors, but not what users can't see", () => {
    const messages = [
      prompt(),
      answer({ error: { name: "APIError", message: "needle in an error" } }, [
        textPart("hidden needle", { id: "prt_0", synthetic: true }),
        { ...PLACE, id: "prt_1", type: "reasoning", text: "needle in thought", start: 1 },
        toolPart("prt_2", "needle", "pending"),
        toolPart("prt_3", "needle", "completed"),
        {
          ...PLACE,
          id: "prt_4",
          type: "tool",
          tool: "bash",
          callID: "call",
          state: { status: "running", input: { needle: ["x"], command: "find\nneedle" }, start: 1 },
        },
        toolPart("prt_5", "bash", "error", { error: "needle failed" }),
      ]),
    ];
    assert.deepEqual(
      findHits(messages, "needle").map(({ entryID, line }) => `${entryID} ${line}`),
      [
        "msg_answer/error needle in an error",
        "prt_5 needle failed",
        "prt_4 needle",
        "prt_4 needle",
        "prt_3 needle done",
        "prt_3 needle",
        "prt_2 needle",
        "prt_1 needle in thought",
      ],
    );
    assert.equal(findHits(messages, "Do it").length, 1);
  });

  it("cuts long lines around the match, and stops at 20 hits", () => {
    const long = `${"before ".repeat(100)}needle${" after".repeat(100)}`;
    const [hit] = findHits([text(long)], "needle");
    assert.match(hit?.line ?? "", /^….{30,40}needle after/);
    assert.ok((hit?.line.length ?? 0) <= 201);
    assert.equal(findHits([text("needle\n".repeat(500))], "needle").length, 20);
  });
});
