import assert from "node:assert/strict";
import type { AgentCall } from "../../../src/engine/agent-permissions.ts";
import { createCommandHandler, createWindowCommands } from "../../../src/bridge/window-commands.ts";
import type { TaskEngine } from "../../../src/engine/engine.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { Emitter } from "../../../src/engine/event.ts";
import type { TaskChange } from "../../../src/engine/registry.ts";
import type { Task } from "../../../src/engine/task.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { NO_TOKENS, record } from "../engine/builders.ts";

const task = (facts: Partial<Task> = {}): Task => ({ ...record(facts), cost: 0, tokens: NO_TOKENS });

/** Takes every call and tells how it was made. */
function recordingEngine(): { engine: TaskEngine; calls: unknown[][] } {
  const calls: unknown[][] = [];
  const engine = new Proxy({} as TaskEngine, {
    get:
      (_, method: string) =>
      (...args: unknown[]) => {
        calls.push([method, ...args]);
        return Promise.resolve(task());
      },
  });
  return { engine, calls };
}

const everything: Required<LaunchInput> = {
  prompt: "Do it.",
  files: [{ url: "file:///work/a.ts?start=3&end=9", mime: "text/plain", filename: "a.ts:3-9" }],
  description: "It",
  agent: "general",
  model: { providerID: "p", modelID: "m", variant: "high" },
  parentSessionID: "ses_parent",
  parentMessageID: "msg_parent",
  launchedBy: "agent",
  batchID: "bat_1",
  callID: "call_1",
  permitted: ["general"],
  fork: {
    sourceSessionID: "ses_source",
    fromMessageID: "msg_1",
    upToMessageID: "msg_2",
    maxToolResultChars: 100,
    maxTokens: 1_000,
  },
};

const agentCall: Required<AgentCall> = {
  sessionID: "ses_parent",
  messageID: "msg_parent",
  callID: "call_1",
  permitted: ["general"],
};

describe("Commands between windows", () => {
  const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  for (const [method, ...args] of [
    ["launch", everything],
    ["launch", { prompt: "Do it.", parentSessionID: "ses_parent", launchedBy: "person" }],
    ["resume", "ses_task", "More."],
    ["resume", "ses_task", "More.", agentCall],
    ["retry", "ses_task"],
    ["cancel", "ses_task"],
    ["cancel", "ses_task", "agent"],
    ["cancelBatch", "bat_1", undefined, "agent"],
    ["stopSubagent", "ses_subagent"],
    ["adopt", "ses_subagent"],
    ["clear", "ses_task", { cancelRunning: true, deleteSession: false }],
    ["clear", "ses_task", undefined, "agent"],
    ["clearBatch", "bat_1", "ses_parent", { cancelRunning: true }, "person"],
    ["restore", "ses_task"],
    ["output", "ses_task"],
    ["sendNotice", "ses_task"],
  ] as const)
    it(`carry ${method}(${JSON.stringify(args).slice(1, -1)}) to the engine as it was called`, async () => {
      const { engine, calls } = recordingEngine();
      const handle = createCommandHandler(engine);
      await handle(method, throughJson(args));
      const [called = []] = calls;
      assert.equal(called[0], method);
      assert.deepEqual(called.slice(1, args.length + 1), args);
      assert.ok(called.slice(args.length + 1).every((rest) => rest === undefined));
    });

  for (const [what, method, args, code] of [
    ["an unknown command", "dispose", [], "unavailable"],
    ["a name that every object has", "constructor", [], "unavailable"],
    ["no arguments", "resume", undefined, "invalid-argument"],
    ["too few", "resume", ["ses_task"], "invalid-argument"],
    ["too many", "retry", ["ses_task", "more"], "invalid-argument"],
    ["wrong ones", "cancel", [7], "invalid-argument"],
    ["fields of a newer version", "launch", [{ ...everything, fork: true }], "invalid-argument"],
  ] as const)
    it(`are refused for ${what}, and nothing is done`, async () => {
      const { engine, calls } = recordingEngine();
      await assert.rejects(createCommandHandler(engine)(method, args), { name: "Refusal", code });
      assert.deepEqual(calls, []);
    });

  describe("in a window that reads", () => {
    let known: Task | undefined;
    let clock: ManualClock;
    const changes = new Emitter<TaskChange>(() => undefined);
    const engine = {
      get: () => known,
      onDidChange: changes.event,
      answer: async () => undefined,
      wait: async () => [],
    };

    beforeEach(() => {
      known = undefined;
      clock = new ManualClock();
    });

    const commands = (result: unknown) =>
      createWindowCommands(engine, { call: () => Promise.resolve(result) }, clock);

    const isDone = async (promise: Promise<unknown>): Promise<boolean> => {
      let done = false;
      void promise.then(() => (done = true));
      await settled();
      return done;
    };

    it("come back when the window itself knows of what they did", async () => {
      known = task({ revision: 4 });
      const resumed = task({ revision: 6, status: "resumed" });
      const resuming = commands(resumed).resume("ses_task", "More.");
      assert.equal(await isDone(resuming), false);
      for (const revision of [5, 6]) {
        known = task({ revision });
        changes.fire({ id: known.id, before: undefined, after: known });
      }
      assert.equal(await resuming, resumed);
      assert.deepEqual([changes.size, clock.pending], [0, 0]);
    });

    it("come back all the same when the window is not told", async () => {
      const launching = commands(task()).launch(everything);
      assert.equal(await isDone(launching), false);
      await clock.advance(1_000);
      assert.equal(await isDone(launching), true);
      assert.deepEqual([changes.size, clock.pending], [0, 0]);
    });
  });
});
