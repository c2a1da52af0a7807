import assert from "node:assert/strict";
import { toToolEntry } from "../../src/daemon/conversation/tool-model.ts";
import type { ToolPart } from "../../src/engine/server-model.ts";
import { describeServerError } from "../../src/opencode/server-error.ts";
import { excerptOfLines } from "../../src/protocol/excerpt.ts";

/** Longer than any limit, which is even: it would be cut inside an emoji. */
const LONG = `x${"😀".repeat(20_000)}`;

describe("a text that is shown in part ends with a whole character", () => {
  for (const [what, shown] of [
    ["a tool's text", () => excerptOfLines(LONG).text],
    ["a tool's title", () => toToolEntry(toolCall({ command: LONG }), undefined).title],
    ["a server's error", () => describeServerError({ message: LONG })],
  ] as const)
    it(`if it is ${what}`, () => {
      assert.match(shown() ?? "", /^x(😀)+$/u);
    });
});

function toolCall(input: Readonly<Record<string, unknown>>): ToolPart {
  return {
    type: "tool",
    id: "prt_1",
    messageID: "msg_1",
    sessionID: "ses_1",
    tool: "bash",
    callID: "call_1",
    state: { status: "running", input, start: 1 },
  };
}
