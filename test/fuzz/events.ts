import assert from "node:assert/strict";
import fc from "fast-check";
import type { Logger } from "../../src/engine/ports.ts";
import { createEventDecoder } from "../../src/opencode/events.ts";
import { settled } from "../support/manual-clock.ts";
import { ToolWindow } from "../unit/tools/tool-window.ts";
import { hostileJson, spoiled } from "./hostile.ts";
import { recordedPayloads } from "./samples.ts";
import type { OpenTarget, Target } from "./target.ts";

/** Spoiled events reach an engine that also follows another task; that one still ends, and its parent is notified. */
export const events: Target = {
  name: "events",
  async open(): Promise<OpenTarget> {
    const window = await ToolWindow.open();
    const [witness, victim] = [await window.launch(), await window.launch()];
    const decode = createEventDecoder(throwing, "/work");
    const payloads = recordedPayloads().map((payload) => aimed(payload, victim.id));
    const payload = fc.oneof({ arbitrary: spoiled(...payloads), weight: 9 }, hostileJson);
    return {
      property: fc.asyncProperty(fc.array(payload, { minLength: 1, maxLength: 4 }), async (batch) => {
        for (const each of batch) {
          const event = decode(JSON.parse(JSON.stringify(each) ?? "null"));
          if (event) window.server.emit(event);
        }
        await settled();
        assert.equal(window.task(witness.id).status, "running");
        assert.deepEqual(
          window.window.log.filter((line) => /TypeError|RangeError|listener|Unexpected/.test(line)),
          [],
        );
      }),
      async close() {
        window.server.finish(witness.id, "42");
        await settled();
        assert.equal(window.task(witness.id).status, "completed");
        assert.equal(window.task(witness.id).notice.state, "delivered");
        window.dispose();
      },
    };
  },
};

const fail = (message: string, error?: unknown): never => {
  throw new Error(message, { cause: error });
};
const throwing: Logger = { debug() {}, info() {}, warn() {}, error: fail };

/** The event, of this session. */
function aimed(payload: unknown, sessionID: string): unknown {
  return JSON.parse(JSON.stringify(payload).replaceAll(/"ses_\w+"/g, JSON.stringify(sessionID)));
}
