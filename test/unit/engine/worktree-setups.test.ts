import assert from "node:assert/strict";
import type { Worktrees } from "../../../src/engine/ports.ts";
import { NO_ISOLATION, type IsolationSettings, type SetupSettings } from "../../../src/engine/settings.ts";
import type { Isolation } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
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
  /** Of the setup commands so far. */
  let signals: AbortSignal[];
  let setup: SetupSettings;
  let isolation: IsolationSettings;
  let worktrees: Worktrees;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    let isThere = true;
    signals = [];
    worktrees = {
      ...noWorktrees,
      obstacle: async () => undefined,
      make: async ({ name }) => ({ name, directory: `/trees/${name}`, base: "base" }),
      claim: async () => undefined,
      exists: async () => isThere,
      changes: async () => ({ files: [], ref: "refs/result" }),
      remove: async () => void (isThere = false),
      remake: async () => void (isThere = true),
      setUp: (_, { signal }) => {
        signals.push(signal);
        return new Promise((resolve) => (finishSetup = resolve));
      },
    };
    setup = { command: "npm ci", isAllowed: true, timeout: 60_000 };
    isolation = { ...NO_ISOLATION, default: "worktree", setup };
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

  it("doesn't keep its task from being told of one that a person launched, which it needn't answer", async () => {
    const id = await completed();
    const { id: below } = await launch(id, "worktree");
    await settled();
    finishSetup();
    await settled();
    await window.engine.worktreeWork.remove(id);
    const making = window.engine.worktreeWork.remake(id);
    await settled();
    server.finish(below, "Done.");
    await settled();
    assert.equal(window.engine.get(below)?.notice.state, "delivered");
    finishSetup();
    await making;
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

  for (const repeats of [true, false])
    it(`of one that is made again runs again if the engine ended, ${repeats ? "for whoever asks again" : "unasked"}, and holds messages until then`, async () => {
      const id = await completed();
      await window.engine.worktreeWork.remove(id);
      window.engine.worktreeWork.remake(id).catch(() => undefined);
      await settled();
      assert.equal(signals.length, 2);
      window.engine.dispose();
      window.kill();
      assert.ok(signals[1]?.aborted);
      finishSetup();
      await settled();
      const before = prompts(id);
      window = await openWindow(server, clock, { isolation }, 2, undefined, worktrees);
      const making = repeats ? window.engine.worktreeWork.remake(id) : undefined;
      await settled();
      assert.equal(signals.length, 3);
      await assert.rejects(window.engine.resume(id, "More."), refusal);
      await window.engine.steer(id, "Then the docs.", { after: true });
      await settled();
      assert.equal(prompts(id), before);
      finishSetup();
      await making;
      await settled();
      assert.equal(prompts(id), before + 1);
      assert.equal(window.engine.get(id)?.worktree?.setup, undefined);
    });

  it("of one that is made again runs again if the engine ended before it began", async () => {
    const id = await completed();
    await window.engine.worktreeWork.remove(id);
    const { remake } = worktrees;
    // The next engine has its files.
    worktrees = { ...worktrees, remake: () => new Promise(() => undefined) };
    window.kill();
    window = await openWindow(server, clock, { isolation }, 2, undefined, worktrees);
    void window.engine.worktreeWork.remake(id);
    await settled();
    window.kill();
    await remake({ name: "", directory: "", base: "" }, isolation);
    window = await openWindow(server, clock, { isolation }, 3, undefined, worktrees);
    await settled();
    assert.equal(signals.length, 2);
  });

  it("isn't waited for if the worktree can't be made again", async () => {
    const id = await completed();
    await window.engine.worktreeWork.remove(id);
    const { remake } = worktrees;
    worktrees.remake = () => Promise.reject(new Error("The worktree was moved."));
    await assert.rejects(window.engine.worktreeWork.remake(id), /was moved/);
    // The user moves it back.
    await remake({ name: "", directory: "", base: "" }, isolation);
    assert.equal((await window.engine.resume(id, "More.")).status, "resumed");
  });

  it("of one that is made again before its task has begun is left to the start of the task", async () => {
    window.kill();
    window = await openWindow(server, clock, { maxConcurrentTasks: 1, isolation }, 2, undefined, worktrees);
    const first = await launch(parent, "folder");
    const { id } = await launch(parent);
    await settled();
    await worktrees.remove({ name: "" });
    await window.engine.worktreeWork.remake(id);
    await settled();
    assert.equal(signals.length, 0);
    const stored = prompts(id);
    server.finish(first.id, "Done.");
    await settled();
    assert.deepEqual([signals.length, prompts(id)], [1, stored]);
    finishSetup();
    await settled();
    assert.equal(prompts(id), stored + 1);
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

  describe("that isn't allowed yet", () => {
    beforeEach(() => Object.assign(setup, { isAllowed: false }));

    it("refuses launches, and tells of an agent's, so that the user can be asked", async () => {
      const asked: string[] = [];
      window.engine.onDidRefuse((one) => asked.push(one.kind === "setup" ? one.sessionID : one.kind));
      const refusal = {
        code: "setup-not-allowed",
        message:
          "The setup command of worktrees isn't allowed yet: npm ci. The user can allow it in VS Code; then try again.",
      };
      const { length } = server.known();
      await assert.rejects(launch(parent), refusal);
      assert.deepEqual(asked, []);
      await assert.rejects(
        window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "agent" }),
        refusal,
      );
      assert.deepEqual(asked, [parent]);
      assert.equal(server.known().length, length);
      await launch(parent, "folder");
    });

    it("keeps a removed worktree from being made again, but not a discarded one", async () => {
      Object.assign(setup, { isAllowed: true });
      const id = await completed();
      const { length } = signals;
      Object.assign(setup, { isAllowed: false });
      await window.engine.worktreeWork.remove(id);
      await assert.rejects(window.engine.worktreeWork.remake(id), { code: "setup-not-allowed" });
      await assert.rejects(window.engine.resume(id, "More."), { code: "worktree-gone" });
      await window.engine.worktreeWork.undoDiscard(id, "refs/discarded");
      await window.engine.resume(id, "More.");
      assert.equal(signals.length, length);
    });

    it("fails a task that waits for it if it was taken back after the launch", async () => {
      Object.assign(setup, { isAllowed: true });
      const { id } = await launch(parent);
      await settled();
      window.kill();
      Object.assign(setup, { isAllowed: false });
      window = await openWindow(server, clock, { isolation }, 2, undefined, worktrees);
      await settled();
      assert.equal(window.engine.get(id)?.error?.name, "SetupFailed");
      assert.match(window.engine.get(id)?.error?.message ?? "", /isn't allowed yet: npm ci/);
    });
  });

  it("does not run again for a worktree that is still there", async () => {
    const id = await completed();
    await window.engine.worktreeWork.remake(id);
    assert.equal(signals.length, 1);
  });

  it("is left out if the setting has gone meanwhile", async () => {
    const { id } = await launch(parent);
    await settled();
    window.kill();
    window = await openWindow(
      server,
      clock,
      { isolation: { ...isolation, setup: undefined } },
      2,
      undefined,
      worktrees,
    );
    await settled();
    assert.equal(signals.length, 1);
    server.finish(id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
  });

  describe("that is running", () => {
    it("is stopped with its task, and when the window is closed", async () => {
      const { id } = await launch(parent);
      await settled();
      const [first] = signals;
      assert.ok(first && !first.aborted);
      await window.engine.cancel(id);
      assert.ok(first.aborted);
      await launch(parent);
      await settled();
      window.engine.dispose();
      assert.ok(signals[1]?.aborted);
    });

    it("is stopped if making a worktree again is cancelled, also before it has begun", async () => {
      const id = await completed();
      await window.engine.worktreeWork.remove(id);
      for (const early of [false, true]) {
        const abort = new AbortController();
        if (early) abort.abort();
        const making = window.engine.worktreeWork.remake(id, abort.signal);
        await settled();
        assert.equal(signals.at(-1)?.aborted, early);
        abort.abort();
        assert.ok(signals.at(-1)?.aborted);
        finishSetup();
        await making;
        await window.engine.worktreeWork.remove(id);
      }
    });
  });
});
