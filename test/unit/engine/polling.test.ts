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

  const asked = (call: string): number => server.journal.filter((entry) => entry.call === call).length;

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

  it("polls within 70 seconds on a live stream", async () => {
    await open({ pollInterval: 5_000 });
    await launch();
    const before = asked("statuses");
    await pass(70_000);
    assert.ok(asked("statuses") > before);
  });

  it("polls at the interval of the settings once the stream is silent", async () => {
    for (const pollInterval of [5_000, 7_000]) {
      await open({ pollInterval });
      await launch();
      await clock.advance(20 * pollInterval);
      const before = asked("statuses");
      await clock.advance(10 * pollInterval);
      assert.equal(asked("statuses") - before, 10);
      window.kill();
    }
  });

  it("reads no message of a queued task whose prompt is stored", async () => {
    await open({ pollInterval: 5_000, maxConcurrentTasks: 1 });
    await launch();
    const waiting = [await launch(), await launch()];
    await clock.advance(10_000);
    const before = server.journal.length;
    await clock.advance(60_000);
    const read = server.journal.slice(before).filter(({ sessionID }) => waiting.includes(sessionID ?? ""));
    assert.deepEqual(read, []);
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
