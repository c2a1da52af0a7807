import assert from "node:assert/strict";
import fc from "fast-check";
import { parsePanelMessage } from "../../src/protocol/output-guard.ts";
import { hostileJson, spoiled } from "./hostile.ts";
import type { Target } from "./target.ts";

const SAMPLES = [
  { type: "ready" },
  { type: "earlier", before: "prt_1" },
  { type: "tool-detail", id: "prt_1" },
  { type: "open-field", id: "prt_1", field: "input" },
  { type: "open-diff", id: "prt_1" },
  { type: "open-path", path: "src/a.ts:3" },
  { type: "open-link", url: "https://a.test" },
  { type: "open-transcript" },
  { type: "copy-result" },
  { type: "resume", prompt: "go on" },
  { type: "run", command: "cancel" },
  { type: "reply", id: "per_1", reply: { type: "permission", reply: "reject", message: "no" } },
  { type: "reply", id: "que_1", reply: { type: "question", answers: [["A", "B"], []] } },
];
/** How long the text in each field of any message may be at most. */
const LENGTHS: Readonly<Record<string, number>> = {
  ...{ type: 20, before: 200, id: 200, field: 200, path: 4_000, url: 8_000, prompt: 1_000_000 },
  ...{ command: 40, reply: 10, message: 100_000, answers: 0 },
};
const ANSWER_LENGTH = 100_000;

/** The host takes a spoiled message unchanged or not at all, and nothing that no message has. */
export const panelMessages: Target = {
  name: "panel-messages",
  async open() {
    const message = fc.oneof({ arbitrary: spoiled(...SAMPLES), weight: 9 }, hostileJson);
    return {
      property: fc.asyncProperty(message, async (value) => {
        const taken = parsePanelMessage(value);
        if (taken === undefined) return;
        assert.equal(taken, value);
        for (const [name, held] of entriesIn(taken)) {
          const limit = /^\d+$/.test(name) ? ANSWER_LENGTH : LENGTHS[name];
          assert.ok(limit !== undefined, name);
          if (typeof held === "string") assert.ok(held.length <= limit, name);
        }
      }),
      close() {},
    };
  },
};

function entriesIn(value: object): readonly (readonly [string, unknown])[] {
  return Object.entries(value).flatMap(([name, held]) => [
    [name, held] as const,
    ...(typeof held === "object" && held !== null ? entriesIn(held as object) : []),
  ]);
}
