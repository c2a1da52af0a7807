import assert from "node:assert/strict";

import fc from "fast-check";

import { parsePanelMessage } from "../../../src/protocol/output-guard.ts";

describe("parsePanelMessage", () => {
  it("accepts each kind of message", () => {
    for (const message of [
      { type: "ready" },
      { type: "earlier", before: "prt_1" },
      { type: "tool-detail", id: "prt_1" },
      { type: "open-field", id: "prt_1", field: "" },
      { type: "run", command: "cancel" },
      { type: "open-link", url: "https://a.test" },
      { type: "send", text: "go on", how: "now" },
      { type: "withdraw" },
      { type: "open-task", id: "ses_1" },
      { type: "open-path", path: "src/a.ts:3" },
      { type: "reply", id: "per_1", reply: { type: "permission", reply: "once" } },
      { type: "reply", id: "per_1", reply: { type: "permission", reply: "reject", message: "no" } },
      { type: "reply", id: "que_1", reply: { type: "question", answers: [["A", "B"], []] } },
      { type: "reply", id: "que_1", reply: { type: "dismiss" } },
    ])
      assert.equal(parsePanelMessage(message), message);
  });

  it("refuses everything else", () => {
    for (const value of [
      undefined,
      null,
      "ready",
      [],
      {},
      { type: 1 },
      { type: "unknown" },
      { type: "constructor" },
      { type: "__proto__" },
      { type: "ready", extra: 1 },
      { type: "earlier" },
      { type: "earlier", before: "" },
      { type: "earlier", before: 5 },
      { type: "run", command: "stopBackgroundWork" },
      { type: "tool-detail", id: "x".repeat(201) },
      { type: "send", text: ["a"], how: "now" },
      { type: "send", text: "a", how: "later" },
      { type: "send", text: "x".repeat(1_000_001), how: "now" },
      { type: "open-path", path: "x".repeat(4_001) },
      { type: "reply", id: "per_1" },
      { type: "reply", id: "per_1", reply: "once" },
      { type: "reply", id: "per_1", reply: { type: "permission", reply: "for-ever" } },
      { type: "reply", id: "per_1", reply: { type: "permission", reply: "once", all: true } },
      { type: "reply", id: "per_1", reply: { type: "permission", reply: "reject", message: 1 } },
      { type: "reply", id: "que_1", reply: { type: "question", answers: ["A"] } },
      { type: "reply", id: "que_1", reply: { type: "question", answers: [[1]] } },
      { type: "reply", id: "que_1", reply: { type: "question", answers: Array(101).fill([]) } },
      { type: "reply", id: "que_1", reply: { type: "question", answers: [["x".repeat(100_001)]] } },
    ])
      assert.equal(parsePanelMessage(value), undefined, JSON.stringify(value)?.slice(0, 80));
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.anything(), (value) => void parsePanelMessage(value)));
  });
});
