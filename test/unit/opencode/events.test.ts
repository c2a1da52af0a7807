import assert from "node:assert/strict";
import { createEventDecoder } from "../../../src/opencode/events.ts";
import { permissionRequests, questionRequests } from "../../../src/opencode/schemas.ts";
import { parse, ValidationError } from "../../../src/opencode/validation.ts";

function decoder() {
  const warnings: string[] = [];
  const logger = {
    debug() {},
    info() {},
    error() {},
    warn: (message: string) => void warnings.push(message),
  };
  return { decode: createEventDecoder(logger, "/work"), warnings };
}

const delta = {
  id: "evt_1",
  type: "message.part.delta",
  properties: { sessionID: "ses_1", messageID: "msg_1", partID: "prt_1", field: "text", delta: "word " },
};
const session = {
  id: "ses_1",
  slug: "calm-fox",
  title: "t",
  directory: "/w",
  model: { id: "m", providerID: "fake", variant: "default" },
  time: { created: 1, updated: 2, archived: 0 },
};

describe("Lists of what waits for the user", () => {
  it("leave out what they don't understand, and nothing else", () => {
    const question = { id: "que_1", sessionID: "ses_1", questions: [] };
    const permission = { id: "per_1", sessionID: "ses_1", permission: "bash", patterns: [], always: [] };
    const idsOf = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
    const strange = [{ id: "que_2" }, null, { ...question, id: "que_3", questions: [{ form: 1 }] }];
    assert.deepEqual(idsOf(parse(questionRequests, [...strange, question])), ["que_1"]);
    assert.deepEqual(idsOf(parse(permissionRequests, [{ ...permission, patterns: 1 }, permission])), [
      "per_1",
    ]);
    assert.throws(() => parse(questionRequests, {}), ValidationError);
  });
});

describe("Event decoder", () => {
  it("reads the server's events", () => {
    const { decode } = decoder();
    assert.deepEqual(decode(delta), { type: "part-delta", ...delta.properties });
    assert.deepEqual(decode({ type: "session.idle", properties: { sessionID: "ses_1" } }), {
      type: "session-status",
      sessionID: "ses_1",
      status: { type: "idle" },
    });
    const changed = decode({ type: "session.updated", properties: { sessionID: "ses_1", info: session } });
    assert.ok(changed?.type === "session-changed");
    assert.deepEqual(changed.session.model, { providerID: "fake", modelID: "m" });
    assert.equal(changed.session.archived, undefined);
    assert.deepEqual(changed.session.task, { kind: "none" });
    const part = { type: "step-start", id: "prt_1", sessionID: "ses_1", messageID: "msg_1" };
    assert.deepEqual(decode({ type: "message.part.updated", properties: { part } }), {
      type: "part-changed",
      part: { type: "other", kind: "step-start", id: "prt_1", sessionID: "ses_1", messageID: "msg_1" },
    });
    assert.deepEqual(
      decode({ type: "question.rejected", properties: { sessionID: "s", requestID: "q", more: 1 } }),
      {
        type: "request-closed",
        sessionID: "s",
        requestID: "q",
      },
    );
  });

  it("reads a session's rules, and knows none if it doesn't understand one", () => {
    const { decode } = decoder();
    const rulesOf = (permission?: unknown) => {
      const info = { ...session, permission };
      const changed = decode({ type: "session.updated", properties: { sessionID: "ses_1", info } });
      return changed?.type === "session-changed" && changed.session.permission;
    };
    const rule = { permission: "bash", pattern: "rm *", action: "ask" };
    assert.deepEqual(rulesOf(), []);
    assert.deepEqual(rulesOf([rule]), [rule]);
    assert.deepEqual(rulesOf([rule, { ...rule, action: "consult" }]), undefined);
    assert.deepEqual(rulesOf({ bash: "deny" }), undefined);
  });

  it("reads what a command had returned before it was aborted", () => {
    const { decode } = decoder();
    const outputOf = (metadata: object): unknown => {
      const state = { status: "error", input: {}, error: "Aborted", metadata, time: { start: 1, end: 2 } };
      const place = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "tool", callID: "call" };
      const part = { ...place, tool: "bash", state };
      const event = decode({ type: "message.part.updated", properties: { part } });
      const read = event?.type === "part-changed" && event.part.type === "tool" && event.part.state;
      return read && read.status === "error" && read.partialOutput;
    };
    assert.equal(outputOf({ interrupted: true, output: "3 tests" }), "3 tests");
    assert.equal(outputOf({ interrupted: true }), undefined);
    assert.equal(outputOf({ output: "3 tests" }), undefined);
  });

  it("reads that a result was cleared", () => {
    const { decode } = decoder();
    const isCleared = (time: object): unknown => {
      const state = {
        status: "completed",
        input: {},
        output: "",
        title: "",
        time: { start: 1, end: 2, ...time },
      };
      const place = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "tool", callID: "call" };
      const event = decode({
        type: "message.part.updated",
        properties: { part: { ...place, tool: "read", state } },
      });
      const read = event?.type === "part-changed" && event.part.type === "tool" && event.part.state;
      return read && read.status === "completed" && read.isCleared;
    };
    assert.equal(isCleared({ compacted: 3 }), true);
    assert.equal(isCleared({}), undefined);
  });

  it("puts the server's own words into facts: why a call was refused, and which subagent it launched", () => {
    const { decode } = decoder();
    const place = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "tool", callID: "call" };
    const read = (tool: string, state: object): object | undefined => {
      const part = { ...place, tool, state: { input: {}, time: { start: 1, end: 2 }, ...state } };
      const event = decode({ type: "message.part.updated", properties: { part } });
      return event?.type === "part-changed" && event.part.type === "tool" ? event.part : undefined;
    };
    const refused = (error: string): unknown =>
      (read("bash", { status: "error", error }) as { state: { refused?: unknown } }).state.refused;
    assert.equal(refused("The user rejected permission to use this specific tool call."), "by-user");
    assert.equal(refused("The user dismissed this question"), "by-user");
    assert.equal(refused("Subagent depth limit reached (1)."), "too-deep");
    assert.equal(refused("No such file"), undefined);
    const running = { status: "running", metadata: { sessionId: "ses_2" } };
    assert.deepEqual((read("task", running) as { subagent?: unknown }).subagent, { sessionID: "ses_2" });
    assert.deepEqual((read("task", { status: "pending" }) as { subagent?: unknown }).subagent, {
      sessionID: undefined,
    });
    assert.ok(!("subagent" in read("bash", running)!));
    const info = { ...session, title: "Look (@general subagent)" };
    const titleOf = (one: object): unknown => {
      const event = decode({ type: "session.updated", properties: { sessionID: "ses_1", info: one } });
      return event?.type === "session-changed" && event.session.title;
    };
    assert.equal(titleOf({ ...info, parentID: "ses_0" }), "Look");
    assert.equal(titleOf(info), info.title);
  });

  it("ignores events that the engine does not need", () => {
    const { decode, warnings } = decoder();
    for (const payload of [null, 1, "text", {}, { type: "x" }, { type: "server.connected", properties: {} }])
      assert.equal(decode(payload), undefined);
    assert.deepEqual(warnings, []);
  });

  it("passes on the server's heartbeat", () => {
    const { decode } = decoder();
    assert.deepEqual(decode({ type: "server.heartbeat", properties: {} }), { type: "heartbeat" });
  });

  it("drops an invalid event, and logs that once per type", () => {
    const { decode, warnings } = decoder();
    const broken = { type: "session.updated", properties: { info: { ...session, title: 7 } } };
    assert.equal(decode(broken), undefined);
    assert.equal(decode(broken), undefined);
    assert.equal(decode({ ...delta, properties: { ...delta.properties, delta: 1 } }), undefined);
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? "", /session\.updated.*"info\.title" is not of type string/);
    assert.ok(decode(delta));
  });

  it("logs an error without a session, such as a plugin's that did not load", () => {
    const { decode, warnings } = decoder();
    const error = { name: "UnknownError", data: { message: "no such plugin" } };
    assert.equal(decode({ type: "session.error", properties: { error } }), undefined);
    assert.match(warnings[0] ?? "", /no such plugin/);
  });

  it("takes a status that it doesn't know for work, as only idle ends a turn", () => {
    const { decode, warnings } = decoder();
    for (const status of [{ type: "image_processing" }, { type: "retry", attempt: "third" }])
      assert.deepEqual(decode({ type: "session.status", properties: { sessionID: "ses_1", status } }), {
        type: "session-status",
        sessionID: "ses_1",
        status: { type: "busy" },
      });
    assert.deepEqual(warnings, []);
  });

  it("takes at most half the time of parsing for 40,000 deltas", () => {
    const { decode } = decoder();
    const texts = Array.from({ length: 40_000 }, (_, index) =>
      JSON.stringify({ ...delta, properties: { ...delta.properties, delta: `word ${index} ` } }),
    );
    /** In milliseconds of this process, as others may take the processor in between. */
    const timeOf = (work: () => void): number => {
      const start = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1_000;
    };
    let payloads: unknown[] = [];
    let [parsing, decoding] = [Infinity, Infinity];
    // Alternately, so that a machine that slows down slows both.
    for (let run = 1; run <= 7; run++) {
      const parseAll = (): unknown => (payloads = texts.map((text) => JSON.parse(text) as unknown));
      parsing = Math.min(parsing, timeOf(parseAll));
      decoding = Math.min(
        decoding,
        timeOf(() => payloads.forEach((payload) => decode(payload))),
      );
    }
    assert.ok(
      decoding <= 0.5 * parsing,
      `decoding ${decoding.toFixed(1)} ms, parsing ${parsing.toFixed(1)} ms`,
    );
  });
});
