import assert from "node:assert/strict";
import type { PermissionRule } from "../../../src/engine/server-model.ts";
import { ManualClock } from "../../support/manual-clock.ts";
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
    window = memoryWindow(server, clock);
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
});
