import assert from "node:assert/strict";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow, newWindow } from "../../support/memory-window.ts";

/** The time between two heartbeats of the server. */
const HEARTBEAT_MS = 10_000;

describe("Polling", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  async function open(settings: Parameters<typeof memoryWindow>[2] = {}): Promise<void> {
    ({ clock, server, parent, window } = await newWindow(settings));
  }

  afterEach(() => window.kill());

  const launch = async (): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "person" })).id;

  /** Lets time pass with a live stream. */
  async function pass(ms: number): Promise<void> {
    for (let rest = ms; rest > 0; rest -= HEARTBEAT_MS) {
      server.emit({ type: "heartbeat" });
      await clock.advance(Math.min(rest, HEARTBEAT_MS));
    }
  }

  it("does not poll for 20 seconds for a silent task on a live stream", async () => {
    await open({ pollInterval: 5_000 });
    await launch();
    await pass(5_000);
    const before = server.journal.length;
    await pass(20_000);
    assert.deepEqual(server.journal.slice(before), []);
  });

  it("reports a task as stalled after the time in the settings, and never with 0", async () => {
    for (const [stallWarning, isStalled] of [
      [30_000, true],
      [300_000, false],
      [0, false],
    ] as const) {
      await open({ pollInterval: 5_000, stallWarning });
      const id = await launch();
      await pass(50_000);
      assert.equal(window.engine.get(id)?.progress?.phase === "stalled", isStalled, `${stallWarning}`);
      window.kill();
    }
  });

  it("shows after a reconnect, also of the daemon, whether the model is asked again", async () => {
    await open();
    const id = await launch();
    const phase = (of: MemoryWindow): string | undefined => of.engine.get(id)?.progress?.phase;
    server.retry(id);
    await settled();
    const next = memoryWindow(server, clock);
    await next.engine.connect();
    assert.deepEqual([phase(window), phase(next)], ["retrying", "retrying"]);
    next.kill();
    window.engine.disconnect();
    server.write(id, "Here it is.");
    server.apply({ type: "session-status", sessionID: id, status: { type: "busy" } });
    window.link.drop();
    await window.engine.connect();
    assert.equal(phase(window), "streaming");
  });

  it("sends the notice of a user's task once its parent is idle", async () => {
    await open();
    await server.prompt(parent, { messageID: "msg_busy", agent: "build", parts: [{ text: "Busy." }] });
    const id = await launch();
    server.finish(id, "Done.");
    await settled();
    const told = (): number =>
      server.journal.filter(({ call, sessionID }) => call === "prompt" && sessionID === parent).length;
    assert.equal(told(), 1);
    server.finish(parent, "Not busy any more.");
    await settled();
    assert.equal(told(), 2);
    assert.equal(window.engine.get(id)?.notice.state, "delivered");
  });
});
