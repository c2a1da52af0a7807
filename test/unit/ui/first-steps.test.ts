import assert from "node:assert/strict";
import type { Memento } from "vscode";
import type { ConnectionState } from "../../../src/engine/connection.ts";
import { Emitter } from "../../../src/engine/event.ts";
import type { TaskChange } from "../../../src/engine/registry.ts";
import type { Task } from "../../../src/engine/task.ts";
import type { Folder } from "../../../src/ui/folders/folders.ts";
import { FIRST_STEPS, FirstSteps } from "../../../src/ui/first-steps.ts";
import { record } from "../engine/builders.ts";

describe("the first steps", () => {
  const rethrow = (error: unknown): never => {
    throw error;
  };
  const tasks = new Emitter<TaskChange>(rethrow);
  const connections = new Emitter<void>(rethrow);
  const values = new Map<string, unknown>();
  const memento = {
    get: <T>(key: string, fallback: T): T => (values.get(key) ?? fallback) as T,
    update: async (key: string, value: unknown) => void values.set(key, value),
  } as unknown as Memento;
  let state: ConnectionState;
  let shown: string | undefined;
  let keys: Set<string>;
  let steps: FirstSteps;

  const folder = {
    connector: {
      get state() {
        return state;
      },
      onDidChange: connections.event,
    },
  } as Folder;

  const open = (): FirstSteps => {
    keys = new Set();
    return new FirstSteps(
      memento,
      { set: (key) => void keys.add(key) },
      { onDidChange: tasks.event },
      { follow: (follower) => follower(folder) },
      (id) => id === shown,
    );
  };
  const change = (facts: Partial<Task>): void => {
    const after = { ...record({}), ...facts } as Task;
    tasks.fire({ id: after.id, before: undefined, after });
  };
  const done = (): readonly string[] => FIRST_STEPS.filter((step) => keys.has(`firstSteps.${step}`));

  beforeEach(() => {
    values.clear();
    state = { kind: "disconnected" };
    shown = undefined;
    steps = open();
  });

  afterEach(() => steps.dispose());

  it("are completed by each action, and by nothing less", () => {
    connections.fire();
    change({ status: "running" });
    assert.deepEqual(done(), []);
    state = { kind: "connected", url: "http://127.0.0.1:4096", version: "1.0.0", own: true };
    connections.fire();
    change({ status: "completed", launchedBy: "person" });
    assert.deepEqual(done(), ["connect", "launch"]);
    change({ id: "ses_1", status: "completed", launchedBy: "person", resumeCount: 1 });
    assert.deepEqual(done(), ["connect", "launch"]);
    shown = "ses_1";
    change({ id: "ses_1", status: "completed", launchedBy: "person", resumeCount: 1 });
    change({ status: "running", launchedBy: "agent" });
    assert.deepEqual(done(), FIRST_STEPS);
  });

  it("do not count an agent's task as the user's first one", () => {
    change({ status: "completed", launchedBy: "agent" });
    assert.deepEqual(done(), ["agentTools"]);
  });

  it("stay completed in the next window", () => {
    steps.finish("launch");
    steps.finish("agentTools");
    steps.dispose();
    steps = open();
    assert.deepEqual(done(), ["launch", "agentTools"]);
  });
});
