import assert from "node:assert/strict";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, type MemoryWindow } from "../../support/memory-window.ts";

describe("Stopping", () => {
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  beforeEach(async () => {
    const clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    window = memoryWindow(server, clock, { maxDepth: 2 });
    server.onEvent(() => window.link.deliver());
    await window.engine.connect();
  });

  afterEach(() => window.kill());

  const launch = async (parentSessionID: string): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID, launchedBy: "agent" })).id;

  it("a task that failed does not go on because a task that it launched ends", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    server.end(above, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    server.finish(below, "Done.");
    await settled();
    assert.equal(window.engine.get(below)?.notice.state, "delivered");
    assert.ok(!server.running().has(above));
  });
});
