import assert from "node:assert/strict";

import fc from "fast-check";

import { parsePanelMessage } from "../../../src/protocol/output-guard.ts";

describe("parsePanelMessage", () => {
  it("takes each kind of message", () => {
    for (const message of [
      { type: "ready" },
      { type: "earlier", before: "prt_1" },
      { type: "tool-detail", id: "prt_1" },
      { type: "open-tool-text", id: "prt_1", field: "" },
      { type: "open-link", url: "https://a.test" },
      { type: "resume", prompt: "go on" },
    ])
      assert.equal(parsePanelMessage(message), message);
  });

  it("refuses all else", () => {
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
      { type: "tool-detail", id: "x".repeat(201) },
      { type: "resume", prompt: ["a"] },
      { type: "resume", prompt: "x".repeat(1_000_001) },
    ])
      assert.equal(parsePanelMessage(value), undefined, JSON.stringify(value)?.slice(0, 80));
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.anything(), (value) => void parsePanelMessage(value)));
  });
});
