import assert from "node:assert/strict";
import { findHits } from "../../../src/daemon/conversation/search.ts";
import { ABORTED } from "../../../src/engine/server-model.ts";
import { answer, prompt, textPart, toolPart } from "../engine/builders.ts";

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

  it("searches the names of files, or else their types, and the texts of calls each by itself", () => {
    const call = { ...PLACE, id: "prt_call", type: "tool", tool: "bash", callID: "call" } as const;
    const place = { ...PLACE, id: "prt_1" };
    const url = "data:,";
    const message = answer({}, [
      { ...place, type: "file", mime: "image/png", url, filename: "needle.png" },
      { ...place, id: "prt_2", type: "file", mime: "needle/png", url },
      { ...place, id: "prt_3", type: "other", kind: "needle" },
      { ...call, state: { status: "completed", input: {}, output: "needle", title: "", start: 1, end: 2 } },
      { ...call, id: "prt_5", state: { status: "pending", input: { nothing: undefined } } },
    ]);
    assert.deepEqual(
      findHits([message], "needle").map(({ entryID, line }) => `${entryID} ${line}`),
      ["prt_call needle", "prt_2 needle/png", "prt_1 needle.png"],
    );
    for (const query of ["undefined", "data:"]) assert.deepEqual(findHits([message], query), []);
  });

  it("shows a line of 200 characters whole, and a longer one from 40 characters before the match", () => {
    const lineOf = (lines: string): string | undefined => findHits([text(lines)], "needle")[0]?.line;
    const at = (before: number, length: number): string => `${"a".repeat(before)}needle`.padEnd(length, "z");
    assert.equal(lineOf(`first\n  ${at(150, 196)}  \nlast`), at(150, 196));
    assert.equal(lineOf(`first\n${at(150, 200)}`), at(150, 200));
    assert.equal(lineOf(`first\n${at(150, 201)}`), `…${at(40, 91)}`);
    assert.equal(lineOf(`first\n${at(40, 300)}`), at(40, 200));
    assert.equal(lineOf(`${"first ".repeat(50)}\n${at(41, 300)}`), `…${at(40, 200)}`);
  });

  it("stops at 20 hits, the newest ones", () => {
    const messages = [text("needle\n".repeat(5), "prt_old"), text("needle\n".repeat(20), "prt_new")];
    const hits = findHits(messages, "needle");
    assert.equal(hits.length, 20);
    assert.ok(hits.every(({ entryID }) => entryID === "prt_new"));
    const [older, newer] = [text("needle\n".repeat(5), "prt_old"), text("needle\n".repeat(19), "prt_new")];
    assert.equal(findHits([older, newer], "needle").at(-1)?.entryID, "prt_old");
    assert.equal(findHits([text("needle\n".repeat(200_000))], "needle").length, 20);
  });

  it("reads calls as the panel shows them: with paths below the folder, and what a shell printed without its colors", () => {
    const call = { ...PLACE, id: "prt_call", type: "tool", tool: "read", callID: "call" } as const;
    const input = { filePath: "/work/src/needle.ts" };
    const output = "\u001b[31mneed\u001b[0mle";
    const state = { status: "completed", input, output, title: "", start: 1, end: 2 } as const;
    const hits = (query: string) => findHits([answer({}, [{ ...call, state }])], query, "/work");
    assert.deepEqual(
      hits("needle").map(({ nth, line }) => [nth, line]),
      [
        [2, "needle"],
        [1, "src/needle.ts"],
      ],
    );
    assert.deepEqual(hits("/work"), []);
  });

  it("leaves out that a turn was interrupted, which the panel says in its own words", () => {
    const aborted = answer({ error: { name: ABORTED, message: "needle" } }, []);
    assert.deepEqual(findHits([aborted], "needle"), []);
  });
});
