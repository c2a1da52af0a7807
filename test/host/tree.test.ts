import assert from "node:assert/strict";
import { ActiveSession } from "../../src/engine/active-session.ts";
import { TaskTree } from "../../src/ui/tree/task-tree.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "../bench/support/memory-engine.ts";
import { MemoryServer } from "../support/memory-server.ts";

describe("the tree of 5,000 tasks", () => {
  it("draws one row anew when one task changes", async () => {
    const server = new MemoryServer();
    const { tasks } = await addRunningTasks(server, 5_000);
    const engine = memoryEngine(server);
    const session = new ActiveSession(engine, server, strictLogger);
    const tree = new TaskTree(engine, session);
    try {
      await engine.connect();
      await session.refresh();
      const rows = tree.getChildren();
      assert.equal(rows.length, tasks.length);
      const drawn: unknown[] = [];
      tree.onDidChangeTreeData((row) => drawn.push(row));
      const told = await server.session(tasks[2_500] ?? "");
      assert.ok(told?.task.kind === "task");
      const record = { ...told.task.record, revision: 2, description: "Changed" };
      server.emit({ type: "session-changed", session: { ...told, task: { kind: "task", record } } });
      assert.deepEqual(drawn, [tree.node(record.id)]);
      assert.ok(rows.includes(tree.node(record.id)));
      assert.equal(tree.getTreeItem(tree.node(record.id)).label, "Changed");
    } finally {
      tree.dispose();
      session.dispose();
      engine.dispose();
    }
  });
});
