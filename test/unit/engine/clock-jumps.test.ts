import assert from "node:assert/strict";
import { isNotice } from "../../../src/engine/asked.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, type MemoryWindow, newServer, POLL_MS } from "../../support/memory-window.ts";

const HOURS = 3_600_000;

describe("A machine clock that is changed while tasks are running", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let losesEvents: boolean;

  beforeEach(async () => {
    losesEvents = false;
    ({ clock, server, parent } = await newServer());
    window = memoryWindow(server, clock, { maxConcurrentTasks: 1, stallWarning: 60_000 });
    server.onEvent(() => (losesEvents ? window.link.drop() : window.link.deliver()));
    await window.engine.connect();
  });
  afterEach(() => window.kill());

  const launch = async (): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "person" })).id;
  const notices = (): number => server.stored(parent).filter(isNotice).length;

  for (const [direction, jump] of [
    ["forward", 5 * HOURS],
    ["back", -5 * HOURS],
  ] as const)
    it(`set ${direction}, ends no task and hides no end; the next task starts, and each end is notified once`, async () => {
      const [first, second] = [await launch(), await launch()];
      clock.sleep(jump);
      for (let polls = 0; polls < 10; polls++) await clock.advance(POLL_MS);
      assert.equal(window.engine.get(first)?.status, "running");
      assert.ok(window.engine.get(second)?.queued);

      server.finish(first, "Done.");
      await settled();
      await clock.advance(POLL_MS);
      assert.equal(window.engine.get(first)?.status, "completed");
      assert.ok((window.engine.get(first)?.worked ?? -1) >= 0);

      assert.ok(!window.engine.get(second)?.queued);
      clock.sleep(-jump);
      // No event reports its end; polling finds it.
      server.finish(second, "Done too.");
      await clock.advance(20 * POLL_MS);
      assert.equal(window.engine.get(second)?.status, "completed");
      assert.equal(notices(), 2);
      assert.ok([first, second].every((id) => window.engine.get(id)?.notice.state === "delivered"));
    });

  it("set back, hides no end whose event was lost", async () => {
    const id = await launch();
    clock.sleep(-5 * HOURS);
    losesEvents = true;
    server.finish(id, "Done.");
    losesEvents = false;
    for (let seconds = 0; seconds < 90; seconds++) {
      server.emit({ type: "heartbeat" });
      await clock.advance(1_000);
    }
    assert.equal(window.engine.get(id)?.status, "completed");
  });
});
