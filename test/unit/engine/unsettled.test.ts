import assert from "node:assert/strict";
import { addRunningTasks } from "../../bench/support/memory-engine.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow } from "../../support/memory-window.ts";
import { remembered } from "../../support/remembered.ts";

describe("Tasks whose parent is still to be notified", () => {
  it("are saved in one write for all that a connect finds", async () => {
    const server = new MemoryServer();
    const { tasks } = await addRunningTasks(server, 100);
    const memory = remembered();
    const written: number[] = [];
    const window = memoryWindow(server, new ManualClock(), {}, 1, {
      ...memory,
      saveUnsettled: (records) => written.push(records.length),
    });
    await window.engine.connect();
    await settled();
    assert.deepEqual(written, [tasks.length]);
    window.kill();
  });
});
