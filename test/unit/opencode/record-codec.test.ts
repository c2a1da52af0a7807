import assert from "node:assert/strict";
import fc from "fast-check";
import { english, sentence } from "../../../src/engine/sentence.ts";
import { taskError, type Span, type TaskRecord } from "../../../src/engine/task.ts";
import { RECORD_KEY, encodeRecord, readRecord } from "../../../src/opencode/record-codec.ts";

const record: TaskRecord = {
  id: "ses_child",
  revision: 3,
  description: "look at the tests",
  agent: "build",
  model: { providerID: "fake", modelID: "m" },
  parentSessionID: "ses_parent",
  parentMessageID: "msg_1",
  launchedBy: "agent",
  toolCalls: 3,
  batchID: "batch",
  isForked: true,
  forkedFrom: "ses_other",
  forkOptions: { carriesOn: true },
  insteadOf: "ses_other",
  followUp: { text: "Then this.", messageID: "msg_5" },
  worktree: { name: "look-a1b2", directory: "/work.worktrees/look-a1b2", base: "abc", outcome: "branched" },
  resumeCount: 2,
  status: "error",
  promptMessageID: "msg_2",
  createdAt: 1,
  startedAt: 2,
  endedAt: 3,
  spans: [
    ["turn", 1, 2],
    ["wait", 2, 3],
  ],
  finalMessageID: "msg_3",
  error: { name: "APIError", message: "no" },
  notice: { state: "pending", messageID: "msg_4", attempts: 1, lastError: "gone" },
};

const stored = (value: unknown) =>
  JSON.parse(JSON.stringify({ [RECORD_KEY]: value })) as Record<string, unknown>;
const child = { id: "ses_child", parentID: "ses_parent" };

describe("Task record codec", () => {
  it("reads what it wrote", () => {
    const reading = readRecord({ ...child, metadata: stored(encodeRecord(record)) });
    assert.deepEqual(reading, { kind: "task", record });
  });

  it("gives a record written at creation the ID of its session", () => {
    const { id, ...draft } = record;
    assert.deepEqual(readRecord({ ...child, metadata: stored(encodeRecord(draft)) }), {
      kind: "task",
      record: { ...draft, id },
    });
  });

  it("ignores a record without an ID if it names another parent", () => {
    const draft = { ...record, id: undefined };
    const metadata = stored(encodeRecord(draft));
    assert.equal(readRecord({ id: "ses_fork", metadata }).kind, "none");
    assert.equal(readRecord({ id: "ses_fork", parentID: "ses_else", metadata }).kind, "none");
  });

  it("ignores a record that was copied by a fork of the session", () => {
    const metadata = stored(encodeRecord(record));
    assert.equal(readRecord({ id: "ses_fork", metadata }).kind, "none");
    assert.equal(readRecord({ id: "ses_fork", metadata: stored({ v: 9, id: "ses_child" }) }).kind, "none");
  });

  it("finds no record where there is none", () => {
    assert.equal(readRecord({ id: "a" }).kind, "none");
    assert.equal(readRecord({ id: "a", metadata: { other: 1 } }).kind, "none");
  });

  for (const [what, value, reason] of [
    ["no version", { ...record }, /has no format/],
    ["a newer version", { ...record, v: 2 }, /newer version .*format 2/],
    ["a missing field", { v: 1, ...record, agent: undefined }, /"agent" is not of type string/],
    ["an unknown status", { v: 1, ...record, status: "paused" }, /"status" is none of "running"/],
    ["no object", "x", /not an object/],
    ["null", null, /not an object/],
  ] as const)
    it(`reports a record with ${what} as unreadable`, () => {
      const reading = readRecord({ ...child, metadata: stored(value) });
      assert.equal(reading.kind, "unreadable");
      assert.match(english(reading.reason), reason);
    });

  it("stays under 4 kB and readable with any text", () => {
    const text = fc.oneof(fc.string({ unit: "binary", maxLength: 9_000 }), fc.string({ maxLength: 9_000 }));
    fc.assert(
      fc.property(text, text, text, (description, message, lastError) => {
        const written = encodeRecord({
          ...record,
          description,
          error: { name: "APIError", message },
          notice: { state: "pending", messageID: "msg_4", attempts: 1, lastError },
        });
        assert.ok(Buffer.byteLength(JSON.stringify(written)) < 4096);
        assert.equal(readRecord({ ...child, metadata: stored(written) }).kind, "task");
        assert.ok((written.description as string).length <= 200);
      }),
      { numRuns: 200 },
    );
  });

  it("leaves out past times if the record would be too large with them", () => {
    const spans = Array.from({ length: 12 }, (): Span => ["wait", 1_700_000_000_000, 1_700_000_060_000]);
    const written = (text: string): Record<string, unknown> =>
      encodeRecord({ ...record, spans, followUp: { text } });
    assert.deepEqual(written("x".repeat(1_500)).spans, spans);
    assert.equal(written("x".repeat(3_000)).spans, undefined);
  });

  it("leaves an error whole if leaving out past times is enough", () => {
    const spans = Array.from({ length: 12 }, (): Span => ["wait", 1_700_000_000_000, 1_700_000_060_000]);
    const error = { name: "APIError", message: "e".repeat(3_000) };
    const written = encodeRecord({ ...record, spans, error });
    assert.equal(written.spans, undefined);
    assert.equal((written.error as { message: string }).message, error.message);
  });

  it("shortens an error no more than necessary", () => {
    const written = encodeRecord({ ...record, error: { name: "APIError", message: "e".repeat(1_000) } });
    assert.equal((written.error as { message: string }).message.length, 1_000);
  });

  it("keeps an error's translatable sentence, unless the error was shortened", () => {
    const read = (tool: string) => {
      const error = taskError("PermissionRejected", sentence("The question of {0} was turned down.", tool));
      const reading = readRecord({ ...child, metadata: stored(encodeRecord({ ...record, error })) });
      assert.equal(reading.kind, "task");
      return reading.record.error;
    };
    assert.deepEqual(read("bash")?.sentence, sentence("The question of {0} was turned down.", "bash"));
    assert.deepEqual(Object.keys(read("x".repeat(5_000)) ?? {}), ["name", "message"]);
  });

  it("shortens the error and why a notice failed or was skipped alike, at whole characters, with an ellipsis", () => {
    const long = "😀".repeat(3_000);
    const shortened = (notice: TaskRecord["notice"]) =>
      encodeRecord({
        ...record,
        notice,
        error: { name: "APIError", message: long },
      }) as unknown as TaskRecord;
    const pending = shortened({ state: "pending", messageID: "msg_4", attempts: 1, lastError: long });
    const skipped = shortened({ state: "skipped", reason: long });
    assert.ok(pending.notice.state === "pending" && skipped.notice.state === "skipped");
    for (const text of [pending.error?.message, pending.notice.lastError, skipped.notice.reason])
      assert.match(text ?? "", /^😀{100,}…$/u);
    const delivered = { state: "delivered", messageID: "msg_4", at: 5 } as const;
    assert.deepEqual(shortened(delivered).notice, delivered);
    const fresh = { state: "pending", messageID: "msg_4", attempts: 0 } as const;
    assert.deepEqual(shortened(fresh).notice, fresh);
  });

  it("has no free text left if everything else needs the space", () => {
    const notice = { state: "none" } as const;
    const empty = {
      ...record,
      spans: undefined,
      notice,
      agent: "",
      error: { name: "APIError", message: "" },
    };
    const left = 4_095 - Buffer.byteLength(JSON.stringify(encodeRecord(empty)));
    const full = encodeRecord({
      ...empty,
      agent: "a".repeat(left),
      error: { name: "APIError", message: "x".repeat(5_000) },
    });
    assert.equal((full.error as { message: string }).message, "");
  });

  it("reads a record with its own ID in a session whose parent is not known", () => {
    assert.equal(readRecord({ id: "ses_child", metadata: stored(encodeRecord(record)) }).kind, "task");
  });

  it("does not take an invalid version or this one for a newer one", () => {
    for (const v of ["2", 1, 0, null]) {
      const reading = readRecord({ ...child, metadata: stored({ v, id: "ses_child" }) });
      assert.ok(reading.kind === "unreadable");
      assert.doesNotMatch(english(reading.reason), /newer version/);
    }
  });

  it("refuses what cannot be shortened", () => {
    assert.throws(() => encodeRecord({ ...record, agent: "a".repeat(5_000) }), /^RangeError: .*4 kB/);
  });
});
