import assert from "node:assert/strict";
import type { Budget } from "../../../src/engine/limit.ts";
import { freshID } from "../../../src/engine/ids.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import type { Task } from "../../../src/engine/task.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow } from "../../support/memory-window.ts";
import { until } from "../../support/wait.ts";
import { NO_TOKENS } from "./builders.ts";

const MINUTE = 60_000;

describe("the budget guard", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let parent: string;
  let budget: Budget;
  let concurrent: number;
  const windows: MemoryWindow[] = [];

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    budget = {};
    concurrent = 0;
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
  });

  afterEach(() => {
    for (const window of windows.splice(0)) window.kill();
  });

  async function open(onWarning: (task: Task) => void = () => undefined): Promise<MemoryWindow> {
    const settings = {
      get budget() {
        return budget;
      },
      get maxConcurrentTasks() {
        return concurrent;
      },
      maxDepth: 3,
    };
    const window = memoryWindow(server, clock, settings, windows.length + 1);
    windows.push(window);
    window.engine.onDidWarn(onWarning);
    server.onEvent(() => window.link.deliver());
    await window.engine.connect();
    return window;
  }

  async function launch({ engine }: MemoryWindow, input: Partial<LaunchInput> = {}): Promise<string> {
    const task = await engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      launchedBy: "person",
      ...input,
    });
    if (!task.queued) server.begin(task.id);
    return task.id;
  }

  /** A running subagent that is no task. */
  async function subagent(): Promise<string> {
    const { id } = await server.createSession({ title: "Look", parentID: parent, agent: "general" });
    await server.prompt(id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.begin(id);
    return id;
  }

  /** The server reports what a session has cost so far. */
  async function spend(id: string, cost: number, output = 0): Promise<void> {
    const session = server.known().find((one) => one.id === id);
    assert.ok(session);
    server.put({ ...session, cost, tokens: { ...NO_TOKENS, output } }, undefined);
    await clock.advance(0);
    await settled();
  }

  async function change({ engine }: MemoryWindow, next: Budget): Promise<void> {
    budget = next;
    engine.settingsChanged();
    await settled();
  }

  const task = ({ engine }: MemoryWindow, id: string): Task => {
    const found = engine.get(id);
    assert.ok(found);
    return found;
  };

  const outcome = (window: MemoryWindow, id: string): string => {
    const { status, error } = task(window, id);
    return error ? `${status} ${error.name}` : status;
  };

  const calls = (call: string, sessionID?: string): number =>
    server.journal.filter((entry) => entry.call === call && entry.sessionID === sessionID).length;

  /** Notices in the parent's conversation. */
  const told = (): number => server.stored(parent).filter(({ info }) => info.role === "user").length;

  it("warns once at 80%, shows the usage from then on, and stops the task at 100%", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const warnings: Task[] = [];
    window.engine.onDidWarn((warned) => warnings.push(warned));
    const id = await launch(window);
    await spend(id, 0.79);
    assert.equal(task(window, id).nearLimit, undefined);
    await spend(id, 0.8);
    await spend(id, 0.9);
    assert.deepEqual(
      warnings.map(({ id, nearLimit }) => [id, nearLimit]),
      [[id, { limit: "taskCost", scope: "task", measure: "cost", used: 0.8, amount: 1 }]],
    );
    assert.equal(task(window, id).nearLimit?.used, 0.9);
    assert.equal(outcome(window, id), "running");
    server.write(id, "So far.");
    await spend(id, 1);
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.match(task(window, id).error?.message ?? "", /limit of \$1\.00.*asyncagents\.budget\.taskCost/);
    assert.equal(task(window, id).nearLimit, undefined);
    assert.equal(calls("abort", id), 1);
    assert.equal(told(), 1);
    await clock.advance(MINUTE);
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(told(), 1);
    assert.deepEqual(window.log, []);
  });

  it("stores the reason before it sends a notice: a window that opens after a crash reads the same", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    server.write(id, "So far.");
    await spend(id, 2);
    const calls = server.journal.map(({ call, sessionID }) => `${call} ${sessionID}`);
    assert.ok(calls.lastIndexOf(`abort ${id}`) < calls.indexOf(`saveRecord ${id}`));
    assert.ok(calls.indexOf(`saveRecord ${id}`) < calls.indexOf(`prompt ${parent}`));
    const kept = server.known().find((session) => session.id === id)?.task;
    assert.ok(kept?.kind === "task");
    assert.equal(kept.record.error?.name, "BudgetExceeded");
    window.kill();
    assert.equal(outcome(await open(), id), "error BudgetExceeded");
    assert.equal(told(), 1);
  });

  it("gives the limit as the reason even if the window ended between the stop and storing it", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    server.write(id, "So far.");
    const abort = server.abort.bind(server);
    const below = await launch(window, { parentSessionID: id });
    server.abort = async (sessionID) => {
      window.kill();
      await abort(sessionID);
    };
    await spend(id, 2);
    assert.equal(calls("saveRecord", id), 0);
    server.abort = abort;
    const next = await open();
    await clock.advance(5_000);
    assert.equal(outcome(next, id), "error BudgetExceeded");
    assert.equal(outcome(next, below), "cancelled");
    assert.equal(told(), 1);
  });

  it("gives the limit as the reason even if the server could not be read after the stop", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    server.write(id, "So far.");
    const below = await launch(window, { parentSessionID: id });
    const { abort, messages } = server;
    server.abort = async (sessionID) => {
      await abort.call(server, sessionID);
      server.abort = abort;
      server.messages = (...rest) => {
        server.messages = messages;
        return rest[0] === id ? Promise.reject(new Error("not now")) : server.messages(...rest);
      };
    };
    await spend(id, 2);
    assert.match(window.log.join(), /Couldn't stop task \w+ at its limit: not now/);
    assert.equal(outcome(window, below), "cancelled");
    await clock.advance(5_000);
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(told(), 1);
  });

  it("tries again to stop what runs below a task if that fails", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    const below = await launch(window, { parentSessionID: id });
    const { abort } = server;
    server.abort = async (sessionID) =>
      sessionID === below ? Promise.reject(new Error("not now")) : abort.call(server, sessionID);
    await spend(id, 2);
    await clock.advance(5_000);
    assert.deepEqual([outcome(window, id), outcome(window, below)], ["error BudgetExceeded", "running"]);
    window.engine.disconnect();
    await clock.advance(5_000);
    server.abort = abort;
    await window.engine.connect();
    await clock.advance(0);
    assert.equal(outcome(window, below), "cancelled");
    const aborts = calls("abort", below);
    await clock.advance(MINUTE);
    assert.equal(calls("abort", below), aborts);
  });

  it("leaves a task cancelled that was aborted elsewhere below its limit", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    await spend(id, 0.9);
    server.write(id, "So far.");
    await server.abort(id);
    await clock.advance(0);
    assert.equal(outcome(window, id), "cancelled");
  });

  it("tries again after a stop failed", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    const abort = server.abort.bind(server);
    server.abort = () => Promise.reject(new Error("not now"));
    await spend(id, 2);
    assert.equal(outcome(window, id), "running");
    assert.match(window.log.join(), /Couldn't stop task \w+ at its limit: not now/);
    server.abort = abort;
    await clock.advance(5_000);
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(told(), 1);
  });

  it("counts all tokens, including those of descendants", async () => {
    budget = { taskTokens: 100 };
    const window = await open();
    const id = await launch(window);
    const below = (await server.createSession({ title: "Look", parentID: id, agent: "general" })).id;
    await spend(id, 0, 60);
    assert.equal(outcome(window, id), "running");
    await server.prompt(below, { messageID: "msg_below", agent: "general", parts: [{ text: "Look." }] });
    server.begin(below);
    await spend(below, 0, 40);
    await clock.advance(0);
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(calls("abort", below), 1);
  });

  it("refuses to adopt a running subagent that it would stop at once; an idle one becomes a task", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await subagent();
    await spend(id, 1.5);
    await assert.rejects(window.engine.adopt(id), {
      code: "over-budget",
      message: /has used \$1\.50 of the limit of \$1\.00 \(asyncagents\.budget\.taskCost\)/,
    });
    assert.equal(window.engine.child(id)?.status, "running");
    assert.equal(calls("abort", id), 0);
    server.finish(id, "Found.");
    assert.equal((await window.engine.adopt(id)).status, "completed");
  });

  it("doesn't count how long a subagent has waited for the user when it is adopted, and as a task", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await subagent();
    await clock.advance(9 * MINUTE);
    server.ask(id);
    await clock.advance(60 * MINUTE);
    await window.engine.adopt(id);
    await clock.advance(60 * MINUTE);
    assert.equal(outcome(window, id), "running");
    server.reply(id, "once");
    await clock.advance(MINUTE - 2_000);
    assert.equal(outcome(window, id), "running");
    await clock.advance(4_000);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("counts minutes of work, not those in the queue or waiting for the user", async () => {
    budget = { taskMinutes: 10 };
    concurrent = 1;
    const window = await open();
    const first = await launch(window);
    const second = await launch(window);
    await clock.advance(9 * MINUTE);
    assert.equal(task(window, second).queued, true);
    server.finish(first, "Done.");
    await settled();
    await clock.advance(0);
    assert.notEqual(task(window, second).queued, true);
    server.begin(second);
    await clock.advance(6 * MINUTE);
    server.ask(second);
    await clock.advance(60 * MINUTE);
    assert.equal(outcome(window, second), "running");
    server.reply(second, "once");
    await clock.advance(3 * MINUTE);
    assert.equal(task(window, second).nearLimit?.limit, "taskMinutes");
    await clock.advance(MINUTE - 1_000);
    assert.equal(outcome(window, second), "running");
    await clock.advance(2_000);
    assert.equal(outcome(window, second), "error BudgetExceeded");
    assert.equal(Math.round((task(window, second).worked ?? 0) / MINUTE), 10);
    assert.equal(clock.pending, 0);
  });

  it("does not count the machine's sleep as work, neither does a window that is loaded later", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await launch(window);
    await clock.advance(MINUTE);
    clock.sleep(60 * MINUTE);
    await clock.advance(MINUTE);
    assert.equal(outcome(window, id), "running");
    window.kill();
    const next = await open();
    assert.equal(outcome(next, id), "running");
    await clock.advance(7 * MINUTE);
    assert.equal(outcome(next, id), "running");
    await clock.advance(MINUTE + 2_000);
    assert.equal(outcome(next, id), "error BudgetExceeded");
  });

  for (const [what, reopen] of [
    ["the connection was lost", (window: MemoryWindow) => window],
    [
      "no window was open",
      (window: MemoryWindow) => {
        window.kill();
        return open();
      },
    ],
  ] as const)
    it(`does not count the time after the server died while ${what}, nor blames the limit`, async () => {
      budget = { taskMinutes: 10 };
      const window = await open();
      const id = await launch(window);
      await clock.advance(2 * MINUTE);
      server.write(id, "So far.");
      const died = clock.now();
      window.engine.disconnect();
      server.crash();
      await clock.advance(15 * 60 * MINUTE);
      const next = await reopen(window);
      if (next === window) await window.engine.connect();
      await clock.advance(MINUTE);
      assert.equal(outcome(next, id), "error Interrupted");
      const { startedAt, endedAt = 0, worked } = task(next, id);
      assert.deepEqual([endedAt, worked], [died, died - startedAt]);
      assert.equal(told(), 1);
      assert.equal(calls("abort", id), 0);
    });

  it("does not count the time until a prompt is started that the server had left unanswered", async () => {
    budget = { taskMinutes: 10 };
    server = new MemoryServer({ now: () => clock.now(), stepwise: true });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    const window = await open();
    const { id } = await window.engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      launchedBy: "person",
    });
    window.engine.disconnect();
    server.crash();
    await clock.advance(60 * MINUTE);
    await window.engine.connect();
    await until("the prompt to be started", async () => {
      await clock.advance(1_000);
      return server.running().has(id);
    });
    server.begin(id);
    await clock.advance(MINUTE);
    assert.equal(outcome(window, id), "running");
    await clock.advance(10 * MINUTE);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("counts the work until a wait in which the server died, also of a turn that is found dead long after", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await launch(window);
    await clock.advance(2 * MINUTE);
    server.ask(id);
    await clock.advance(MINUTE);
    window.engine.disconnect();
    server.crash();
    await clock.advance(15 * 60 * MINUTE);
    await window.engine.connect();
    await clock.advance(MINUTE);
    assert.equal(outcome(window, id), "error Interrupted");
    assert.equal(task(window, id).worked, 2 * MINUTE);
  });

  it("looks every second at limits of time only", async () => {
    const window = await open();
    await launch(window);
    const { pending } = clock;
    await change(window, { taskCost: 1 });
    assert.equal(clock.pending, pending);
    await change(window, { taskMinutes: 10 });
    assert.equal(clock.pending, pending + 1);
    window.engine.disconnect();
    await change(window, { taskMinutes: 5 });
    assert.equal(clock.pending, 0);
  });

  it("stops nothing without a connection, and doesn't try again either", async () => {
    const window = await open();
    const id = await launch(window);
    window.engine.disconnect();
    await change(window, { taskCost: 1 });
    await spend(id, 2);
    assert.equal(calls("abort", id), 0);
    server.abort = () => {
      window.engine.disconnect();
      return Promise.reject(new Error("not now"));
    };
    await window.engine.connect();
    await settled();
    assert.match(window.log.join(), /Couldn't stop task \w+ at its limit: not now/);
    assert.equal(clock.pending, 0);
    assert.equal(outcome(window, id), "running");
  });

  it("starts no timer once it is disposed while it connects", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    await launch(window);
    const connecting = window.engine.connect();
    window.engine.dispose();
    await connecting;
    await settled();
    assert.equal(clock.pending, 0);
  });

  it("does not count waits for the user before a reload, finished or not", async () => {
    budget = { taskMinutes: 10 };
    const first = await open();
    const id = await launch(first);
    await clock.advance(MINUTE);
    server.ask(id);
    await clock.advance(60 * MINUTE);
    server.reply(id, "once");
    await settled();
    await clock.advance(MINUTE);
    first.kill();
    const second = await open();
    assert.equal(outcome(second, id), "running");
    await clock.advance(6 * MINUTE);
    assert.equal(task(second, id).nearLimit?.limit, "taskMinutes");
    const asked = clock.now();
    server.emit({
      type: "request-asked",
      request: {
        type: "permission",
        id: freshID("msg", asked, Math.random).replace("msg", "per"),
        sessionID: id,
        permission: "bash",
        patterns: [],
        always: [],
        metadata: {},
      },
    });
    const [request] = second.engine.pendingRequests(id);
    assert.ok(request);
    await clock.advance(60 * MINUTE);
    second.kill();
    server.apply({ type: "request-asked", request });
    const third = await open();
    await clock.advance(MINUTE);
    assert.equal(outcome(third, id), "running");
    await third.engine.answer(request, { type: "permission", reply: "once" });
    await clock.advance(3 * MINUTE);
    assert.equal(outcome(third, id), "error BudgetExceeded");
  });

  it("does not count waits for the user before a reload, if a limit is set only after that", async () => {
    const first = await open();
    const id = await launch(first);
    server.ask(id);
    await clock.advance(60 * MINUTE);
    server.reply(id, "once");
    await settled();
    first.kill();
    const second = await open();
    await change(second, { taskMinutes: 10 });
    assert.equal(outcome(second, id), "running");
  });

  it("does not count the time in which a descendant waits for the user", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await launch(window);
    const below = (await server.createSession({ title: "Look", parentID: id, agent: "general" })).id;
    await server.prompt(below, { messageID: "msg_below", agent: "general", parts: [{ text: "Look." }] });
    server.begin(below);
    server.ask(below);
    await clock.advance(60 * MINUTE);
    assert.equal(outcome(window, id), "running");
    server.reply(below, "once");
    await clock.advance(11 * MINUTE);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("does not count that time either if the task goes on while a descendant waits already", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await launch(window);
    const below = await launch(window, { parentSessionID: id });
    server.ask(below);
    server.finish(id, "I wait for it.");
    await settled();
    await window.engine.resume(id, "More.");
    server.begin(id);
    await settled();
    await clock.advance(60 * MINUTE);
    assert.equal(outcome(window, id), "resumed");
    server.reply(below, "once");
    await clock.advance(11 * MINUTE);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("stores how long a task waited, also if the user answers while the connection is lost", async () => {
    budget = { taskMinutes: 10 };
    const first = await open();
    const id = await launch(first);
    server.ask(id);
    await settled();
    await clock.advance(30 * MINUTE);
    first.engine.disconnect();
    server.reply(id, "once");
    await first.engine.connect();
    await settled();
    assert.equal(outcome(first, id), "running");
    first.kill();
    const second = await open();
    await clock.advance(MINUTE);
    assert.equal(outcome(second, id), "running");
    await clock.advance(10 * MINUTE);
    assert.equal(outcome(second, id), "error BudgetExceeded");
  });

  it("counts the last turn of an idle subagent that was adopted, also once it is resumed", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const { id } = await server.createSession({ title: "Look", parentID: parent, agent: "general" });
    await server.prompt(id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.begin(id);
    await clock.advance(8 * MINUTE);
    server.finish(id, "Found it.");
    await settled();
    await window.engine.adopt(id);
    await window.engine.resume(id, "More.");
    server.begin(id);
    await settled();
    await clock.advance(3 * MINUTE);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("counts a limit over all turns, and refuses to resume a task that used it up", async () => {
    const window = await open();
    const id = await launch(window);
    await spend(id, 0.9);
    server.finish(id, "Done.");
    await settled();
    await change(window, { taskCost: 0.9 });
    await assert.rejects(window.engine.resume(id, "More."), {
      code: "over-budget",
      message:
        /has used \$0\.90 of its limit of \$0\.90 \(asyncagents\.budget\.taskCost\)\. The user can increase the limit\.$/,
    });
    assert.equal(outcome(window, id), "completed");
    await change(window, { taskCost: 1 });
    await window.engine.resume(id, "More.");
    server.begin(id);
    await spend(id, 1.1);
    assert.equal(outcome(window, id), "error BudgetExceeded");
  });

  it("refuses to resume a task of a batch that used up its limit", async () => {
    budget = { batchCost: 1 };
    const window = await open();
    const batchID = "bat-one";
    const ids = [await launch(window, { batchID }), await launch(window, { batchID })] as const;
    await spend(ids[0], 0.1);
    server.finish(ids[0], "Done.");
    await settled();
    await spend(ids[1], 1);
    assert.equal(outcome(window, ids[1]), "error BudgetExceeded");
    const prompted = calls("prompt", ids[0]);
    await assert.rejects(window.engine.resume(ids[0], "More."), {
      code: "over-budget",
      message: /\$1\.00 \(asyncagents\.budget\.batchCost\)/,
    });
    assert.equal(outcome(window, ids[0]), "completed");
    assert.equal(calls("prompt", ids[0]), prompted);
  });

  it("refuses to launch under a limit of 0, and stops no running task for it", async () => {
    const window = await open();
    const id = await launch(window);
    await change(window, { taskCost: 0, batchMinutes: -1 });
    await spend(id, 5);
    assert.equal(outcome(window, id), "running");
    await assert.rejects(launch(window), {
      code: "invalid-argument",
      message: /taskCost is 0, .* for no limit/,
    });
    assert.equal(window.engine.list(parent).length, 1);
  });

  it("applies a changed limit at once to running tasks, and warns of the new one", async () => {
    budget = { taskCost: 10 };
    const window = await open();
    const warned: (number | undefined)[] = [];
    window.engine.onDidWarn(({ nearLimit }) => warned.push(nearLimit?.amount));
    const id = await launch(window);
    await spend(id, 0.9);
    await change(window, { taskCost: 1 });
    assert.equal(task(window, id).nearLimit?.amount, 1);
    await change(window, { taskCost: 5 });
    assert.equal(task(window, id).nearLimit, undefined);
    await change(window, { taskCost: 0.5 });
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.deepEqual(warned, [1]);
  });

  it("reports what a task has used of a limit when another limit, amount or share counts, and not otherwise", async () => {
    const window = await open();
    const id = await launch(window);
    await spend(id, 0.9, 90);
    const shown: (string | undefined)[] = [];
    window.engine.onDidChange(({ after }) => {
      const near = after?.nearLimit;
      shown.push(near && `${near.limit} ${near.used} of ${near.amount}`);
    });
    for (const next of [
      { taskCost: 2 },
      { taskCost: 1 },
      { taskCost: 1, taskTokens: 1_000 },
      { taskCost: 1.1 },
      // Of both limits, 90% are used.
      { taskCost: 1 },
      { taskTokens: 100 },
      {},
      {},
    ])
      await change(window, next);
    assert.deepEqual(shown, [
      "taskCost 0.9 of 1",
      "taskCost 0.9 of 1.1",
      "taskCost 0.9 of 1",
      "taskTokens 90 of 100",
      undefined,
    ]);
  });

  it("warns once of each limit that is near: of each task's, and of a batch's, which has the same name elsewhere", async () => {
    budget = { taskCost: 1, batchCost: 2 };
    const window = await open();
    const warned: string[] = [];
    window.engine.onDidWarn(({ id, nearLimit }) => warned.push(`${id} ${nearLimit?.limit}`));
    const other = (await server.createSession({ title: "Other", agent: "build" })).id;
    const batchID = "names";
    const [one, two] = [await launch(window, { batchID }), await launch(window, { batchID })];
    const apart = await launch(window, { batchID, parentSessionID: other });
    await spend(one, 0.85);
    await spend(two, 0.86);
    await spend(apart, 0.87);
    // Of the batch, more is used now than of the first task's own limit.
    assert.deepEqual(warned, [`${one} taskCost`, `${one} batchCost`, `${two} taskCost`, `${apart} taskCost`]);
  });

  it("asks once to stop a task that used up its limit, however long that takes", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const id = await launch(window);
    let finish: () => void = () => undefined;
    const { abort } = server;
    let aborts = 0;
    server.abort = async (sessionID) => {
      aborts++;
      await new Promise<void>((resolve) => (finish = resolve));
      return abort.call(server, sessionID);
    };
    await spend(id, 1);
    await spend(id, 2);
    await clock.advance(5_000);
    assert.equal(aborts, 1);
    finish();
    await settled();
    assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(aborts, 1);
  });

  it("logs that it couldn't be stored how long a task waited", async () => {
    budget = { taskMinutes: 10 };
    const window = await open();
    const id = await launch(window);
    server.ask(id);
    await clock.advance(1_500);
    const { saveRecord } = server;
    server.saveRecord = async () => Promise.reject(new Error("Disk full."));
    server.reply(id, "once");
    await settled();
    assert.match(window.log.join("\n"), /^Couldn't store how long task \S+ waited: Disk full\.$/m);
    server.saveRecord = saveRecord;
    assert.equal(outcome(window, id), "running");
  });

  it("stops all running and queued tasks of a batch that used up its limit, and adds no more to it", async () => {
    budget = { batchCost: 1 };
    concurrent = 2;
    const window = await open();
    const warned: Task[] = [];
    window.engine.onDidWarn((one) => warned.push(one));
    const batchID = "bat-one";
    const done = await launch(window, { batchID });
    await spend(done, 0.3);
    server.finish(done, "Done.");
    await settled();
    await window.engine.clear(done);
    const ids = [await launch(window, { batchID }), await launch(window, { batchID })];
    const queued = await launch(window, { batchID });
    const other = await launch(window, { batchID: "bat-other" });
    await spend(ids[0] ?? "", 0.55);
    assert.equal(warned.length, 1);
    assert.equal(task(window, ids[1] ?? "").nearLimit?.limit, "batchCost");
    await spend(ids[1] ?? "", 0.2);
    await clock.advance(0);
    for (const id of [...ids, queued]) assert.equal(outcome(window, id), "error BudgetExceeded");
    assert.equal(
      server.journal.filter(
        ({ call, sessionID, parts }) => call === "prompt" && sessionID === queued && parts === 0,
      ).length,
      0,
    );
    assert.equal(outcome(window, other), "running");
    await assert.rejects(launch(window, { batchID }), {
      code: "over-budget",
      message: /The user can increase the limit\.$/,
    });
    await assert.rejects(window.engine.retry(queued), { code: "over-budget" });
  });

  for (const [what, limits] of [
    ["a completed task", { taskCost: 1 }],
    ["the batch of a completed task", { batchCost: 1 }],
  ] as const)
    it(`stops what still runs below ${what} that used up its limit, and counts no minutes there`, async () => {
      budget = limits;
      const window = await open();
      const above = await launch(window, { batchID: "bat-one" });
      await clock.advance(7 * MINUTE);
      const below = [
        await launch(window, { parentSessionID: above, batchID: "bat-below" }),
        await launch(window, { parentSessionID: above, batchID: "bat-beside" }),
      ] as const;
      await spend(above, 0.5);
      server.finish(above, "They go on.");
      await settled();
      await change(window, { ...limits, taskMinutes: 6, batchMinutes: 6 });
      await clock.advance(3 * MINUTE);
      await spend(below[0], 0.3);
      await spend(below[1], 0.1);
      for (const id of below) assert.equal(outcome(window, id), "running");
      await spend(below[1], 0.2);
      await clock.advance(0);
      for (const id of below) assert.equal(outcome(window, id), "error BudgetExceeded");
      assert.match(
        task(window, below[0]).error?.message ?? "",
        /a task above it reached the limit of \$1\.00/,
      );
      assert.equal(outcome(window, above), "completed");
    });

  it("lets nothing begin or go on below a completed task that used up its limit", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const above = await launch(window);
    const between = await launch(window, { parentSessionID: above });
    const below = await launch(window, { parentSessionID: between, launchedBy: "agent" });
    const beside = await server.createSession({ title: "Look", parentID: above, agent: "general" });
    server.finish(above, "They go on.");
    server.finish(between, "It goes on.");
    await settled();
    await spend(above, 0.5);
    await spend(below, 0.5);
    await clock.advance(0);
    assert.equal(outcome(window, below), "error BudgetExceeded");
    assert.equal(outcome(window, between), "completed");
    assert.ok(!server.running().has(between));
    const refusal = { code: "over-budget", message: /^A task above it has reached the limit of \$1\.00/ };
    await assert.rejects(window.engine.resume(between, "More."), refusal);
    await assert.rejects(window.engine.retry(below), refusal);
    await assert.rejects(launch(window, { parentSessionID: between }), refusal);
    await server.prompt(beside.id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.begin(beside.id);
    await settled();
    await assert.rejects(window.engine.adopt(beside.id), refusal);
  });

  it("gives the limit above as the reason even if the server could not be read after the stop", async () => {
    budget = { taskCost: 1 };
    const window = await open();
    const above = await launch(window);
    const below = await launch(window, { parentSessionID: above });
    server.finish(above, "It goes on.");
    await settled();
    await spend(above, 0.5);
    const { messages } = server;
    server.messages = () => Promise.reject(new Error("not now"));
    await spend(below, 0.5);
    server.messages = messages;
    await clock.advance(MINUTE);
    assert.equal(outcome(window, below), "error BudgetExceeded");
  });

  it("does not warn again in a window that was reloaded", async () => {
    budget = { taskCost: 1 };
    const before = await open();
    const id = await launch(before);
    await spend(id, 0.85);
    before.kill();
    const warned: Task[] = [];
    const after = await open((one) => warned.push(one));
    await spend(id, 0.9);
    assert.equal(task(after, id).nearLimit?.used, 0.9);
    assert.deepEqual(warned, []);
  });

  it("sums the usage of tasks that ran since a time, with their descendants", async () => {
    const window = await open();
    const yesterday = await launch(window);
    await spend(yesterday, 1, 10);
    await clock.advance(MINUTE);
    server.finish(yesterday, "Done.");
    await settled();
    await clock.advance(60 * MINUTE);
    const overnight = await launch(window);
    await clock.advance(30 * MINUTE);
    const midnight = clock.now();
    const today = await launch(window, { parentSessionID: overnight });
    await spend(today, 0.5, 5);
    await spend(overnight, 0.25, 1);
    const below = async (above: string, cost: number): Promise<void> =>
      spend((await server.createSession({ title: "Look", parentID: above, agent: "general" })).id, cost, 1);
    await below(today, 0.125);
    await below(yesterday, 8);
    await clock.advance(10 * MINUTE);
    const { tokens, worked, ...rest } = await window.engine.takenSince(midnight);
    assert.deepEqual(rest, { tasks: 2, launchedBefore: 1, cost: 0.875 });
    assert.equal(tokens.output, 7);
    assert.equal(worked / MINUTE, 50);
  });

  it("holds back a message that waits, and a task with one doesn't count as running for its siblings", async () => {
    const window = await open();
    const [held, other] = [await launch(window), await launch(window)];
    await window.engine.steer(held, "Then this.", { after: true });
    await spend(held, 2);
    budget = { taskCost: 1 };
    server.finish(held, "Done.");
    await settled();
    assert.equal(window.engine.get(held)?.status, "completed");
    assert.deepEqual(window.engine.get(held)?.followUp, { text: "Then this." });
    server.finish(other, "Done too.");
    await settled();
    const told = (await server.messages(parent)).flatMap(({ parts }) => parts);
    const lines = told.map((part) => (part.type === "text" ? part.text : ""));
    assert.ok(
      lines.some((line) => line.includes("(2 of 2 done)")),
      lines.join("\n"),
    );
  });
});
