import assert from "node:assert/strict";
import { addRunningTasks } from "../../bench/support/memory-engine.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, openWindow } from "../../support/memory-window.ts";
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

  it("keep a name that is given while a lost notification is sent again", async () => {
    const clock = new ManualClock();
    const server = new MemoryServer({ now: () => clock.now() });
    const parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    const window = await openWindow(server, clock);
    const { id } = await window.engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      launchedBy: "person",
    });
    server.finish(id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.notice.state, "delivered");
    window.engine.disconnect();
    let store: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (store = resolve));
    const [saveRecord, message] = [server.saveRecord.bind(server), server.message.bind(server)];
    let renamed: Promise<unknown> | undefined;
    server.message = async (sessionID, messageID) => {
      if (sessionID !== parent || renamed) return message(sessionID, messageID);
      server.saveRecord = async (record) => {
        await held;
        return saveRecord(record);
      };
      renamed = window.engine.rename(id, "A better name");
      await settled();
      return undefined;
    };
    const connected = window.engine.connect();
    await settled();
    store();
    await Promise.all([connected, renamed ?? assert.fail()]);
    await settled();
    assert.deepEqual(
      [window.engine.get(id)?.description, window.engine.get(id)?.notice.state],
      ["A better name", "delivered"],
    );
    window.kill();
  });
});
