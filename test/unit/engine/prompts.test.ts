import assert from "node:assert/strict";
import { isStored, partsOf } from "../../../src/engine/arrival.ts";
import { ConfirmedPrompts } from "../../../src/engine/confirmed-prompts.ts";
import type { Prompt } from "../../../src/engine/server-model.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";

const PROMPT: Prompt = { messageID: "msg_1", agent: "general", parts: [{ text: "Go on." }] };

describe("A prompt", () => {
  it("is stored with what users read last, which therefore shows that all of it is", () => {
    const parts = partsOf("msg_00000000000fx", [
      { text: "Text" },
      { text: "Background", synthetic: true },
      { text: "More text", synthetic: false },
      { text: "More background", synthetic: true },
    ]);
    assert.deepEqual(
      parts.map(({ id, text }) => `${id} ${text}`),
      [
        "prt_000000000010x Background",
        "prt_000000000012x More background",
        "prt_00000000000fx Text",
        "prt_000000000011x More text",
      ],
    );
  });

  it("counts as stored once its own text is; what a server doesn't answer is unknown", async () => {
    const task = { id: "ses_1", promptMessageID: "msg_1" };
    const server = new MemoryServer();
    assert.equal(await isStored(server, task), false);
    const { id } = await server.createSession({ title: "Work" });
    await server.prompt(id, { ...PROMPT, parts: [{ text: "Background", synthetic: true }] });
    assert.equal(await isStored(server, { ...task, id }), false);
    await server.prompt(id, { ...PROMPT, messageID: "msg_2" });
    assert.equal(await isStored(server, { id, promptMessageID: "msg_2" }), true);
    server.message = async () => Promise.reject(new Error("Gone."));
    assert.equal(await isStored(server, task), undefined);
  });
});

describe("A prompt that is confirmed", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let prompts: ConfirmedPrompts;
  let session: string;
  let events: boolean;

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    prompts = new ConfirmedPrompts({ server, clock });
    events = true;
    server.onEvent((event) => {
      if (events) prompts.accept(event);
    });
    session = (await server.createSession({ title: "Work" })).id;
  });

  /** The outcome, once it is known. */
  function send(): { outcome: string | undefined } {
    const sent = { outcome: undefined as string | undefined };
    prompts.send(session, PROMPT).then(
      (outcome) => (sent.outcome = outcome),
      (error: unknown) => (sent.outcome = String(error)),
    );
    return sent;
  }

  it("is stored as soon as the event says so, and nothing is left waiting", async () => {
    const sent = send();
    await settled();
    assert.equal(sent.outcome, "stored");
    assert.equal(clock.pending, 0);
    assert.ok(!server.journal.some(({ call }) => call === "message"));
  });

  it("is looked for after five seconds without an event", async () => {
    events = false;
    const sent = send();
    await clock.advance(4_999);
    assert.equal(sent.outcome, undefined);
    await clock.advance(1);
    assert.equal(sent.outcome, "stored");
  });

  it("is missing if the server doesn't have it then", async () => {
    events = false;
    server.message = async () => undefined;
    const sent = send();
    await clock.advance(5_000);
    assert.equal(sent.outcome, "missing");
  });

  it("isn't confirmed by another prompt, or by text that users don't read", async () => {
    events = false;
    const sent = send();
    await settled();
    const part = { type: "text", id: "prt_1", sessionID: session, messageID: "msg_1", text: "" } as const;
    prompts.accept({ type: "part-changed", part: { ...part, synthetic: true } });
    prompts.accept({ type: "part-changed", part: { ...part, synthetic: false, messageID: "msg_2" } });
    await settled();
    assert.equal(sent.outcome, undefined);
    prompts.accept({ type: "part-changed", part: { ...part, synthetic: false } });
    await settled();
    assert.equal(sent.outcome, "stored");
  });

  it("is lost if the connection is", async () => {
    events = false;
    const sent = send();
    await settled();
    prompts.disconnect();
    await settled();
    assert.equal(sent.outcome, "lost");
    assert.equal(clock.pending, 0);
  });

  it("that is refused is waited for no longer", async () => {
    server.prompt = async () => Promise.reject(new Error("Refused."));
    const sent = send();
    await settled();
    assert.equal(sent.outcome, "Error: Refused.");
    assert.equal(clock.pending, 0);
  });
});
