import assert from "node:assert/strict";
import type { Worktrees } from "../../../src/engine/ports.ts";
import { NO_ISOLATION } from "../../../src/engine/settings.ts";
import type { Isolation } from "../../../src/engine/task.ts";
import type { ManualClock } from "../../support/manual-clock.ts";
import { settled } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow, POLL_MS } from "../../support/memory-window.ts";
import { noWorktrees } from "../../support/no-worktrees.ts";

describe("The setup of a worktree", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  /** Ends the setup command that is running. */
  let finishSetup: () => void;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    let isThere = true;
    const worktrees: Worktrees = {
      ...noWorktrees,
      obstacle: async () => undefined,
      make: async ({ name }) => ({ name, directory: `/trees/${name}`, base: "base" }),
      claim: async () => undefined,
      exists: async () => isThere,
      changes: async () => ({ files: [], ref: "refs/result" }),
      remove: async () => void (isThere = false),
      remake: async () => void (isThere = true),
      setUp: () => new Promise((resolve) => (finishSetup = resolve)),
    };
    const setup = { command: "npm ci", isAllowed: true, timeout: 60_000 };
    const isolation = { ...NO_ISOLATION, default: "worktree", setup } as const;
    window = await openWindow(server, clock, { maxDepth: 2, isolation }, 1, undefined, worktrees);
  });

  afterEach(() => window.kill());

  const prompts = (id: string): number =>
    server.journal.filter(({ call, sessionID }) => call === "prompt" && sessionID === id).length;

  const launch = (parentSessionID: string, isolation?: Isolation) =>
    window.engine.launch({ prompt: "Work.", parentSessionID, launchedBy: "person", isolation });

  async function completed(): Promise<string> {
    const { id } = await launch(parent);
    await settled();
    finishSetup();
    await settled();
    server.finish(id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
    return id;
  }

  const refusal = { code: "still-running", message: /is still being set up\. Try again later\.$/ };

  it("keeps work away from a worktree that is made again", async () => {
    const id = await completed();
    const [before, known] = [prompts(id), server.known().length];
    await window.engine.worktreeWork.remove(id);
    const making = window.engine.worktreeWork.remake(id);
    const early = assert.rejects(window.engine.resume(id, "More."), refusal);
    await settled();
    await early;
    await assert.rejects(window.engine.resume(id, "More."), refusal);
    await assert.rejects(launch(id, "folder"), refusal);
    assert.deepEqual([prompts(id), server.known().length], [before, known]);
    finishSetup();
    await making;
    await window.engine.resume(id, "More.");
    assert.equal(prompts(id), before + 1);
  });

  it("is followed by what waits for the task of a worktree that is made again", async () => {
    const id = await completed();
    const before = prompts(id);
    await window.engine.worktreeWork.remove(id);
    const making = window.engine.worktreeWork.remake(id);
    await settled();
    await window.engine.steer(id, "Then the docs.", { after: true });
    await settled();
    assert.equal(prompts(id), before);
    assert.equal(window.engine.get(id)?.followUp?.text, "Then the docs.");
    finishSetup();
    await making;
    await settled();
    assert.equal(prompts(id), before + 1);
    assert.equal(window.engine.get(id)?.status, "resumed");
  });

  it("keeps the end of a subtask from waking a task whose worktree is made again", async () => {
    const id = await completed();
    const { id: subtask } = await window.engine.launch({
      prompt: "Work.",
      parentSessionID: id,
      launchedBy: "agent",
      isolation: "worktree",
    });
    await settled();
    finishSetup();
    await settled();
    await window.engine.worktreeWork.remove(id);
    const making = window.engine.worktreeWork.remake(id);
    await settled();
    const before = prompts(id);
    server.finish(subtask, "Done.");
    await clock.advance(10_000);
    assert.equal(window.engine.get(subtask)?.status, "completed");
    assert.equal(prompts(id), before);
    finishSetup();
    await making;
    await clock.advance(60_000);
    assert.equal(prompts(id), before + 1);
    assert.equal(window.engine.get(subtask)?.notice.state, "delivered");
  });

  it("doesn't keep other tasks from being launched", async () => {
    const id = await completed();
    await window.engine.worktreeWork.remove(id);
    const making = window.engine.worktreeWork.remake(id);
    await settled();
    const finish = finishSetup;
    const other = await launch(id, "worktree");
    await launch(parent, "folder");
    await settled();
    assert.equal(window.engine.get(other.id)?.progress?.phase, "setting-up");
    finish();
    await making;
  });

  it("is over once the task has started, even if no answer said that the start was stored", async () => {
    const { id } = await launch(parent);
    await settled();
    // The task is stored as started; then it is read, as there was no answer.
    window.link.fail("answer-lost", 1);
    window.link.fail("refused", 2);
    finishSetup();
    await clock.advance(60_000);
    await clock.advance(2 * POLL_MS);
    assert.equal(window.engine.get(id)?.progress?.phase, "thinking");
    assert.equal((await launch(id, "folder")).parentSessionID, id);
  });
});
