import assert from "node:assert/strict";
import type { Message, Part } from "../../../src/engine/server-model.ts";
import { historyEvents, sessionEvent } from "../../../src/opencode/history.ts";

const place = { sessionID: "ses_new", directory: "/work" };

function message(role: "user" | "assistant", created: number, texts: readonly string[]): Message {
  const id = `msg_${role}_${created}`;
  const parts = texts.map((text, index): Part => {
    return { id: `prt_${index}`, sessionID: "ses_old", messageID: id, type: "text", text, synthetic: false };
  });
  const base = { id, sessionID: "ses_old", created, agent: "build" };
  const model = { providerID: "p", modelID: "m" };
  const tokens = { input: 7, output: 7, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  return role === "user"
    ? { info: { ...base, role, model }, parts }
    : { info: { ...base, role, parentID: "msg_unknown", model, cost: 7, tokens, summary: false }, parts };
}

interface Written {
  readonly info?: { id: string; time: { created: number }; parentID?: string; cost?: number };
  readonly part?: { id: string; text: string; messageID: string };
}

function written(messages: readonly Message[]): readonly Written[] {
  return historyEvents(messages, place, 5_000, Math.random).map(({ data }) => data as Written);
}

describe("History that is written into a session", () => {
  it("keeps its order, as the server sorts messages by time and parts by ID", () => {
    const texts = Array.from({ length: 40 }, (_, index) => `part ${index}`);
    const infos = [
      message("user", 1_000, texts),
      message("assistant", 1_000, texts),
      message("user", 900, ["x"]),
    ];
    const events = written(infos);
    const times = events.flatMap(({ info }) => (info ? [info.time.created] : []));
    assert.deepEqual(times, [1_000, 1_001, 1_002]);
    for (const { info } of events) {
      if (!info) continue;
      const parts = events.flatMap(({ part }) => (part?.messageID === info.id ? [part] : []));
      const sorted = parts.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      assert.deepEqual(sorted, parts);
    }
  });

  it("attaches an answer without its prompt to the previous prompt, and copies no cost", () => {
    const [prompt, , answer] = written([message("user", 1, ["ask"]), message("assistant", 2, ["say"])]);
    assert.equal(answer?.info?.parentID, prompt?.info?.id);
    assert.equal(answer?.info?.cost, 0);
  });

  it("is numbered without gaps after the session's creation", () => {
    const events = historyEvents([message("user", 1, ["a", "b"])], place, 5, Math.random);
    assert.deepEqual(
      events.map(({ seq }) => seq),
      [1, 2, 3],
    );
    assert.equal(sessionEvent("ses_new", {}, [message("user", 1, ["a", "b"])], 5, Math.random).seq, 4);
  });
});
