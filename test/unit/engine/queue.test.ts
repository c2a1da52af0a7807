import assert from "node:assert/strict";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import type { Worktrees } from "../../../src/engine/ports.ts";
import { NO_ISOLATION } from "../../../src/engine/settings.ts";
import type { Task } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow } from "../../support/memory-window.ts";
import { noWorktrees } from "../../support/no-worktrees.ts";

const RETRY_MS = 2_000;

describe("The queue of tasks", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let settings: Partial<EngineSettings>;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    settings = { maxConcurrentTasks: 1 };
    await open();
  });

  afterEach(() => window.kill());

  async function open(others: Partial<EngineSettings> = {}, worktrees: Worktrees = noWorktrees) {
    Object.assign(settings, others);
    window = await openWindow(server, clock, settings, 1, undefined, worktrees);
    await settled();
  }

  async function launch(input: Partial<LaunchInput> = {}): Promise<Task> {
    await clock.advance(1);
    return window.engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      launchedBy: "person",
      ...input,
    });
  }

  async function allow(tasks: number): Promise<void> {
    Object.assign(settings, { maxConcurrentTasks: tasks });
    window.engine.settingsChanged();
    await settled();
  }

  const isQueued = ({ id }: Task): boolean => window.engine.get(id)?.queued === true;
  /** The prompts that start a turn, of which a queued task's has no parts of its own. */
  const starts = ({ id }: Task): number =>
    server.journal.filter((each) => each.call === "prompt" && each.sessionID === id && each.parts === 0)
      .length;
  const finish = async ({ id }: Task): Promise<void> => {
    server.finish(id, "Done.");
    await settled();
  };

  it("starts tasks in the order of their launch, whatever order the server lists them in", async () => {
    const running = await launch();
    const waiting = [await launch(), await launch(), await launch()];
    window.kill();
    const { sessions } = server;
    server.sessions = async () => (await sessions.call(server)).toReversed();
    await open();
    assert.deepEqual(waiting.map(isQueued), [true, true, true]);
    for (const [index, task] of [running, ...waiting].entries()) {
      assert.deepEqual(
        waiting.map(isQueued),
        waiting.map((_, place) => place >= index),
      );
      await finish(task);
    }
    assert.deepEqual(waiting.map(starts), [1, 1, 1]);
  });

  it("gives one slot to one of two tasks that are launched at once", async () => {
    const [one, other] = await Promise.all([launch(), launch()]);
    assert.deepEqual([isQueued(one), isQueued(other)].toSorted(), [false, true]);
  });

  it("starts as many tasks as new settings allow, and all without a limit", async () => {
    await launch();
    const waiting = [await launch(), await launch(), await launch()];
    await allow(2);
    assert.deepEqual(waiting.map(isQueued), [false, true, true]);
    await allow(0);
    assert.deepEqual(waiting.map(isQueued), [false, false, false]);
    assert.deepEqual(waiting.map(starts), [1, 1, 1]);
  });

  it("takes no new settings into account while there is no connection", async () => {
    await launch();
    const waiting = await launch();
    window.engine.disconnect();
    await allow(0);
    await clock.advance(60_000);
    assert.equal(starts(waiting), 0);
    await window.engine.connect();
    await settled();
    assert.ok(!isQueued(waiting));
    assert.equal(starts(waiting), 1);
  });

  it("counts no task that waits for the user, which may exceed the limit when it continues", async () => {
    const asking = await launch();
    const waiting = await launch();
    server.begin(asking.id);
    server.ask(asking.id);
    await settled();
    assert.ok(!isQueued(waiting));
    const third = await launch();
    assert.ok(isQueued(third));
    server.reply(asking.id, "once");
    await settled();
    assert.ok(isQueued(third));
  });

  it("starts a task once, and counts it while it is being started", async () => {
    const first = await launch();
    const second = await launch();
    const third = await launch();
    const { prompt } = server;
    let goOn = (): void => undefined;
    server.prompt = async (...call) => {
      await new Promise<void>((resolve) => (goOn = resolve));
      await prompt.apply(server, call);
    };
    await finish(first);
    window.engine.settingsChanged();
    await settled();
    goOn();
    server.prompt = prompt;
    await settled();
    assert.deepEqual([second, third].map(starts), [1, 0]);
    assert.ok(isQueued(third));
  });

  it("tries again after two seconds if the task couldn't be started, and says so in the log", async () => {
    const first = await launch();
    const waiting = await launch();
    const { saveRecord } = server;
    let saved = 0;
    server.saveRecord = async (record) => {
      if (record.id !== waiting.id || ++saved > 1) return saveRecord.call(server, record);
      throw new Error("The disk is full.");
    };
    await finish(first);
    assert.ok(isQueued(waiting));
    assert.match(window.log.join("\n"), /^Couldn't start task \w+: The disk is full\.$/m);
    await clock.advance(RETRY_MS - 1);
    assert.ok(isQueued(waiting));
    await clock.advance(1);
    assert.ok(!isQueued(waiting));
    assert.equal(starts(waiting), 1);
  });

  it("keeps the place of a task whose prompt isn't stored yet, also before later ones", async () => {
    const first = await launch();
    const waiting = await launch();
    const { message } = server;
    let isThere = false;
    server.message = async (sessionID, messageID) =>
      sessionID === waiting.id && !isThere ? undefined : message.call(server, sessionID, messageID);
    await finish(first);
    assert.ok(isQueued(waiting));
    const later = await launch();
    assert.deepEqual([waiting, later].map(isQueued), [true, true]);
    await clock.advance(RETRY_MS);
    assert.ok(isQueued(waiting));
    isThere = true;
    await clock.advance(RETRY_MS);
    assert.deepEqual([waiting, later].map(isQueued), [false, true]);
    assert.deepEqual([waiting, later].map(starts), [1, 0]);
  });

  it("tries nothing again without a connection, nor once the window is closed", async () => {
    const first = await launch();
    const waiting = await launch();
    const { message } = server;
    server.message = async () => undefined;
    await finish(first);
    const { pending } = clock;
    window.engine.disconnect();
    assert.ok(clock.pending < pending);
    server.message = message;
    await clock.advance(60_000);
    assert.ok(isQueued(waiting));
    server.message = async () => undefined;
    await window.engine.connect();
    await settled();
    window.engine.dispose();
    server.message = message;
    await clock.advance(60_000);
    assert.equal(starts(waiting), 0);
    assert.equal(clock.pending, 0);
  });

  it("doesn't start a task that was cancelled while it waited", async () => {
    const first = await launch();
    const [waiting, next] = [await launch(), await launch()];
    await window.engine.cancel(waiting.id);
    await finish(first);
    assert.deepEqual([waiting, next].map(starts), [0, 1]);
  });

  describe("with tasks that have to be set up", () => {
    /** Ends the command of each worktree that is being set up. */
    let setups: { readonly succeed: () => void; readonly fail: (error: Error) => void }[];

    beforeEach(async () => {
      setups = [];
      Object.assign(settings, { maxConcurrentTasks: 0 });
      window.kill();
      const setup = { command: "npm ci", isAllowed: true, timeout: 60_000 };
      await open(
        { isolation: { ...NO_ISOLATION, default: "worktree", setup } },
        {
          ...noWorktrees,
          obstacle: async () => undefined,
          make: async ({ name }) => ({ name, directory: `/trees/${name}`, base: "base" }),
          claim: async () => undefined,
          exists: async () => true,
          changes: async () => ({ files: [], ref: "refs/result" }),
          setUp: () =>
            new Promise((succeed, fail) => setups.push({ succeed: () => succeed(undefined), fail })),
        },
      );
    });

    const fail = async (): Promise<void> => {
      setups.shift()?.fail(new Error("npm failed."));
      await settled();
    };

    it("starts them after their commands, and counts them meanwhile", async () => {
      Object.assign(settings, { maxConcurrentTasks: 1 });
      const [one, other] = [await launch(), await launch()];
      assert.equal(setups.length, 1);
      setups.shift()?.succeed();
      await settled();
      assert.deepEqual([one, other].map(isQueued), [false, true]);
      assert.equal(window.engine.get(one.id)?.worktree?.setup, undefined);
      await finish(one);
      setups.shift()?.succeed();
      await settled();
      assert.ok(!isQueued(other));
    });

    it("fails a task whose command fails, tells why, and goes on", async () => {
      Object.assign(settings, { maxConcurrentTasks: 1 });
      const [one, other] = [await launch(), await launch()];
      await fail();
      const { status, error } = window.engine.get(one.id) ?? {};
      assert.equal(status, "error");
      assert.deepEqual(
        [error?.name, error?.message],
        ["SetupFailed", "The prompt wasn't sent. npm failed. Retry it as a new task."],
      );
      assert.equal(starts(one), 0);
      assert.equal(setups.length, 1);
      assert.ok(isQueued(other));
    });

    it("fails it only once its prompt is stored, which a retry needs", async () => {
      const { message } = server;
      server.message = async () => undefined;
      const task = await launch();
      await fail();
      assert.equal(window.engine.get(task.id)?.status, "running");
      server.message = message;
      await clock.advance(RETRY_MS);
      await fail();
      assert.equal(window.engine.get(task.id)?.status, "error");
    });

    it("neither fails nor starts a task that was cancelled meanwhile", async () => {
      const task = await launch();
      await window.engine.cancel(task.id);
      await fail();
      assert.equal(window.engine.get(task.id)?.status, "cancelled");
      assert.equal(starts(task), 0);
    });

    it("fails none without a connection: its command may run again later", async () => {
      const task = await launch();
      window.engine.disconnect();
      await fail();
      assert.equal(window.engine.get(task.id)?.status, "running");
      assert.equal(starts(task), 0);
    });
  });
});
