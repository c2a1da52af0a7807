import assert from "node:assert/strict";
import fc from "fast-check";
import { english } from "../../src/engine/sentence.ts";
import { encodeRecord, readRecord, RECORD_KEY } from "../../src/opencode/record-codec.ts";
import { record } from "../unit/engine/builders.ts";
import { hostileJson, hostileText, spoiled } from "./hostile.ts";
import type { Target } from "./target.ts";

const MAX_BYTES = 4_096;
const place = { id: "ses_task", parentID: "ses_parent" };
const samples = [
  record({ notice: { state: "pending", messageID: "msg_1", attempts: 1, lastError: "no" } }),
  record({ status: "error", error: { name: "APIError", message: "no" }, isForked: true, endedAt: 2 }),
  record({
    notice: { state: "delivered", messageID: "msg_1", at: 5 },
    model: { providerID: "p", modelID: "m" },
  }),
].map((each) => JSON.parse(JSON.stringify(encodeRecord(each))) as unknown);

/** What is read from a spoiled record is either nothing, a reason, or a record that is stored and read again unchanged. */
export const records: Target = {
  name: "records",
  async open() {
    const stored = fc.oneof({ arbitrary: spoiled(...samples), weight: 9 }, hostileJson);
    return {
      property: fc.asyncProperty(stored, hostileText, async (value, description) => {
        const reading = readRecord({ ...place, metadata: { [RECORD_KEY]: value } });
        if (reading.kind === "unreadable") assert.match(english(reading.reason), /\S/);
        if (reading.kind === "task" && isSmall(value)) {
          const again = readRecord({ ...place, metadata: { [RECORD_KEY]: asStored(reading.record) } });
          assert.equal(again.kind, "task");
        }
        const written = asStored(record({ description }));
        assert.ok(Buffer.byteLength(JSON.stringify(written)) < MAX_BYTES);
        assert.equal(readRecord({ ...place, metadata: { [RECORD_KEY]: written } }).kind, "task");
      }),
      close() {},
    };
  },
};

/** Whether the product could have written it. */
function isSmall(value: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(value)) < MAX_BYTES;
}

/** As the server returns it. */
function asStored(each: Parameters<typeof encodeRecord>[0]): unknown {
  return JSON.parse(JSON.stringify(encodeRecord(each)));
}
