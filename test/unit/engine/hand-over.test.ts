import assert from "node:assert/strict";
import { ServerFailure, type AgentServer } from "../../../src/engine/ports.ts";
import type { Prompt } from "../../../src/engine/server-model.ts";
import { answerText } from "../../../src/engine/turn.ts";
import { promptText } from "../../support/engine.ts";
import type { ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow } from "../../support/memory-window.ts";

const FILES = [{ url: "file:///work/notes.txt", mime: "text/plain", filename: "notes.txt" }];

describe("A prompt that was sent", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  /** What the server does with the prompt of a task; `store` is its usual behavior. */
  let take: (prompt: Prompt, store: () => Promise<void>, sessionID: string) => Promise<void>;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    const real = server.prompt.bind(server);
    const prompt: AgentServer["prompt"] = (id, prompt) =>
      id === parent ? real(id, prompt) : take(prompt, () => real(id, prompt), id);
    server.prompt = prompt;
    window = await openWindow(server, clock);
  });

  afterEach(() => window.kill());

  const launch = async (files: typeof FILES = []): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", files, parentSessionID: parent, launchedBy: "person" }))
      .id;

  /** Lets time pass with a live stream. */
  async function pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      server.emit({ type: "heartbeat" });
      await clock.advance(1_000);
    }
  }

  const outcome = (id: string): string => {
    const task = window.engine.get(id);
    return [task?.status, ...(task?.error ? [task.error.name] : [])].join(" ");
  };

  /** Notices in the parent's conversation. */
  const told = (): number => server.stored(parent).filter(({ info }) => info.role === "user").length;

  const unreachable = new ServerFailure("POST", "unreachable", "No answer.");
  const refusal = { name: "UnknownError", message: "Agent not found." };

  it("ends its task at once if the server reports that it could not store it", async () => {
    take = async (_prompt, _store, sessionID) =>
      server.emit({ type: "session-error", sessionID, error: refusal });
    const id = await launch();
    await pass(2);
    assert.equal(outcome(id), "error UnknownError");
    assert.equal(told(), 1);
  });

  it("ends its task after seconds if the server accepted it and stored nothing", async () => {
    take = async () => undefined;
    const id = await launch();
    await pass(20);
    assert.equal(outcome(id), "error NeverStarted");
    assert.match(window.engine.get(id)?.error?.message ?? "", /never stored its prompt\. Launch a new task/);
    assert.equal(told(), 1);
  });

  it("leaves the server its time to store it from when it accepted it, however late that was", async () => {
    take = async (_prompt, store) => {
      await new Promise<void>((resolve) => void clock.after(16_000, resolve));
      clock.after(12_000, () => void store());
    };
    const launched = launch();
    await pass(30);
    assert.equal(outcome(await launched), "running");
  });

  it("ends its task after seconds if the server neither answers nor stores it, though it is sent again", async () => {
    let sent = 0;
    take = async () => {
      sent++;
      throw unreachable;
    };
    const id = await launch();
    await pass(20);
    assert.equal(outcome(id), "error NeverStarted");
    assert.ok(sent > 2);
    assert.equal(told(), 1);
  });

  it("as a follow-up ends its task with that reason", async () => {
    take = (_prompt, store) => store();
    const id = await launch();
    server.finish(id, "Done.");
    await pass(1);
    take = async () => undefined;
    await window.engine.resume(id, "More.");
    await pass(20);
    assert.equal(outcome(id), "error PromptLost");
    assert.match(window.engine.get(id)?.error?.message ?? "", /follow-up was lost/);
  });

  for (const [how, taken, error] of [
    ["if the server stores nothing", () => undefined, "PromptLost"],
    [
      "if the server reports an error",
      (sessionID: string) => server.emit({ type: "session-error", sessionID, error: refusal }),
      "UnknownError",
    ],
  ] as const)
    it(`that waited for the end is kept ${how}, and a new task that continues gets it`, async () => {
      take = (_prompt, store) => store();
      const id = await launch();
      await window.engine.steer(id, "Then this.", { after: true });
      take = async (_prompt, _store, sessionID) => taken(sessionID);
      server.finish(id, "Done.");
      await pass(20);
      assert.equal(outcome(id), `error ${error}`);
      assert.deepEqual(window.engine.get(id)?.followUp, { text: "Then this." });
      assert.equal(window.engine.get(id)?.resumeCount, 0);
      take = (_prompt, store) => store();
      const next = await window.engine.continue(id);
      await pass(1);
      assert.match(await promptText(server, next), /Then this\./);
    });

  it("is sent again after a call without an answer, until a server that comes back stores it", async () => {
    let sent = 0;
    take = async (_prompt, store) => {
      if (++sent < 3) throw unreachable;
      await store();
    };
    const id = await launch();
    await pass(20);
    assert.equal(outcome(id), "running");
    server.finish(id, "Done.");
    await pass(1);
    assert.equal(outcome(id), "completed");
  });

  it("to a running task counts as stored if the server takes long to accept it", async () => {
    take = (_prompt, store) => store();
    const id = await launch();
    take = async (_prompt, store) => {
      await new Promise<void>((resolve) => void clock.after(8_000, resolve));
      clock.after(1_000, () => void store());
    };
    const steered = window.engine.steer(id, "Look at b.ts, too.");
    await pass(10);
    await steered;
  });

  it("that waited for the end is not sent again and again if the server refuses it, but at the next connect", async () => {
    let sent = 0;
    take = (_prompt, store) => store();
    const id = await launch();
    await window.engine.steer(id, "Then this.", { after: true });
    take = async () => {
      if (++sent > 10) await new Promise(() => undefined);
      throw new ServerFailure("POST", "refused", "Refused.");
    };
    server.finish(id, "Done.");
    await pass(20);
    assert.deepEqual([outcome(id), sent, told()], ["completed", 1, 1]);
    take = (_prompt, store) => store();
    window.engine.disconnect();
    await window.engine.connect();
    await pass(1);
    assert.equal(outcome(id), "resumed");
    assert.equal(told(), 1);
  });

  it("that waited for the end and was refused doesn't let its task count as running for the others", async () => {
    take = (_prompt, store) => store();
    const [refused, other] = [await launch(), await launch()];
    await window.engine.steer(refused, "Then this.", { after: true });
    take = () => Promise.reject(new ServerFailure("POST", "refused", "Refused."));
    server.finish(refused, "Done.");
    await pass(1);
    server.finish(other, "Done too.");
    await pass(1);
    const lines = server.stored(parent).map(answerText);
    assert.match(lines.at(-1) ?? "", /\(2 of 2 done\)/);
  });

  it("that waited for the end and is sent again after a reconnect lets its task count as running again", async () => {
    take = (_prompt, store) => store();
    const [refused, other] = [await launch(), await launch()];
    await window.engine.steer(refused, "Then this.", { after: true });
    take = () => Promise.reject(new ServerFailure("POST", "refused", "Refused."));
    server.finish(refused, "Done.");
    await pass(1);
    const { prompt } = server;
    server.prompt = (id, sent) => (id === parent ? Promise.reject(unreachable) : prompt(id, sent));
    server.finish(other, "Done too.");
    await pass(1);
    window.engine.disconnect();
    Object.assign(server, { prompt });
    take = (_prompt, store) => store();
    await window.engine.connect();
    await pass(2);
    assert.match(server.stored(parent).map(answerText).at(-1) ?? "", /\(1 of 2 done\)/);
  });

  it("that waited for the end is not lost to another one that is to wait while the server stores it", async () => {
    take = (_prompt, store) => store();
    const id = await launch();
    await window.engine.steer(id, "Then this.", { after: true });
    take = async (_prompt, store) => void clock.after(8_000, () => void store());
    server.finish(id, "Done.");
    await pass(1);
    assert.equal(outcome(id), "resumed");
    await assert.rejects(window.engine.steer(id, "And that.", { after: true }), /is being sent/);
    await pass(10);
    await window.engine.steer(id, "And that.", { after: true });
    assert.deepEqual(window.engine.get(id)?.followUp, { text: "And that." });
  });

  for (const [what, files, seconds] of [
    ["ten seconds to store it", [], 10],
    ["most of a minute to read its files", FILES, 50],
  ] as const)
    it(`is waited for while the server takes ${what}`, async () => {
      take = async (_prompt, store) => void clock.after(seconds * 1_000, () => void store());
      const id = await launch([...files]);
      await pass(seconds + 10);
      assert.equal(outcome(id), "running");
      server.finish(id, "Done.");
      await pass(1);
      assert.equal(outcome(id), "completed");
    });

  it("is not sent again if the tasks are refreshed while the server reads its files", async () => {
    let sent = 0;
    take = async (_prompt, store) => {
      sent++;
      clock.after(30_000, () => void store());
    };
    const id = await launch(FILES);
    await pass(5);
    await window.engine.connect();
    await pass(40);
    assert.deepEqual([outcome(id), sent], ["running", 1]);
  });

  it("is waited for if the server could not read one of its files", async () => {
    take = async (_prompt, store, sessionID) => {
      server.emit({ type: "session-error", sessionID, error: refusal });
      clock.after(30_000, () => void store());
    };
    const id = await launch(FILES);
    await pass(40);
    assert.equal(outcome(id), "running");
  });
});
