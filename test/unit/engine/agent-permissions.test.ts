import assert from "node:assert/strict";
import type { PermissionRule } from "../../../src/engine/server-model.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, type MemoryWindow } from "../../support/memory-window.ts";

const NO_COMMANDS: PermissionRule = { permission: "bash", pattern: "*", action: "deny" };

describe("What the task of an agent is allowed", () => {
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  beforeEach(async () => {
    const clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    window = memoryWindow(server, clock, { maxDepth: 3 });
    await window.engine.connect();
  });

  afterEach(() => window.kill());

  /** The rules of a new task's session. */
  async function launched(): Promise<readonly PermissionRule[]> {
    const { id } = await window.engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      callingAgent: "build",
      launchedBy: "agent",
    });
    return (await server.session(id))?.permission ?? [];
  }

  const reads = (): number =>
    server.journal.filter(({ call, sessionID }) => call === "session" && sessionID === parent).length;

  it("follows the rules of the agent's session, which events report and nothing reads again", async () => {
    assert.ok(!(await launched()).some(({ permission }) => permission === "bash"));
    await server.restrict(parent, [NO_COMMANDS]);
    window.link.deliver();
    assert.deepEqual((await launched())[0], NO_COMMANDS);
    assert.equal(reads(), 0);
  });

  it("follows rules that changed while there was no connection, also before it is complete again", async () => {
    window.engine.disconnect();
    await server.restrict(parent, [NO_COMMANDS]);
    const connecting = window.engine.connect();
    assert.deepEqual((await launched())[0], NO_COMMANDS);
    assert.equal(reads(), 1);
    await connecting;
    assert.deepEqual((await launched())[0], NO_COMMANDS);
    assert.equal(reads(), 1);
  });

  it("is nothing if the rules of the agent's session can't be understood", async () => {
    const session = await server.session(parent);
    assert.ok(session);
    server.put({ ...session, permission: undefined }, undefined);
    window.link.deliver();
    await assert.rejects(launched(), { code: "not-allowed" });
  });

  describe("when it is resumed", () => {
    let task: string;

    beforeEach(async () => {
      const input = { prompt: "Work.", parentSessionID: parent, launchedBy: "person" } as const;
      task = (await window.engine.launch(input)).id;
      server.finish(task, "Done.");
      window.link.deliver();
      await settled();
      await server.restrict(parent, [NO_COMMANDS]);
    });

    const resume = () => window.engine.resume(task, "More.", { sessionID: parent, agent: "build" });
    const rules = async () => (await server.session(task))?.permission;

    it("is limited even if its own rules can't be understood", async () => {
      const session = await server.session(task);
      assert.ok(session);
      server.put({ ...session, permission: undefined }, undefined);
      window.link.deliver();
      await resume();
      assert.deepEqual(await rules(), [NO_COMMANDS]);
    });

    it("limits what it launches from then on, even if its resume fails and no event reports that", async () => {
      window.link.deliver();
      // The calls before these: the session, the agents, its new rules. These would store the resume and take it back.
      for (const call of [3, 4, 5]) window.link.fail("refused", call);
      await assert.rejects(resume());
      assert.deepEqual(await rules(), [NO_COMMANDS]);
      parent = task;
      assert.deepEqual((await launched())[0], NO_COMMANDS);
    });
  });
});
