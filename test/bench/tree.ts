/** What a change of one task among 5,000 costs: from the server's event to the list that the view shows. */
import { ActiveSession } from "../../src/engine/active-session.ts";
import { arrange } from "../../src/ui/tree/arrangement.ts";
import { isFinished } from "../../src/ui/tree/family.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { interleaved, median } from "./support/measure.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const TASKS = 5_000;

const server = new MemoryServer();
const { parent, tasks } = await addRunningTasks(server, TASKS);
const engine = memoryEngine(server);
const session = new ActiveSession(engine, server, strictLogger);
await engine.connect();
await session.refresh();

let next = 0;
/** Milliseconds from the event that a task's record has changed until `use` is done. */
const change = async (use: () => void): Promise<number> => {
  const told = await server.session(tasks[(next++ * 97) % TASKS] ?? "");
  if (told?.task.kind !== "task") throw new Error("There is no such task.");
  const { record } = told.task;
  const changed = { ...told, task: { kind: "task", record: { ...record, revision: 1_000 + next } } } as const;
  let done: number | undefined;
  const subscription = engine.onDidChange(() => {
    use();
    done = performance.now();
  });
  const start = performance.now();
  server.emit({ type: "session-changed", session: changed });
  subscription.dispose();
  if (done === undefined) throw new Error("The change was not told.");
  return done - start;
};

const figures = await interleaved(
  { rounds: 101, warmUp: 10 },
  {
    told: () => change(() => undefined),
    list: () => change(() => void engine.list(parent)),
    // What the view asks for its context keys and its badge, and to decide whether to watch the stream.
    view: () =>
      change(() => {
        engine.children(parent).some((child) => isFinished(engine, child));
        engine.openRequests();
        engine.active();
      }),
    // For rows that were added, removed or moved.
    rows: () => change(() => void arrange(engine, engine.children(parent), "active")),
  },
);
session.dispose();
engine.dispose();

const report = new Report("tree");
report.figures("event → change told", "ms", figures.told);
report.figures("event → change told → list", "ms", figures.list);
report.figures("event → all that the view asks", "ms", figures.view);
report.figures("event → rows in their order", "ms", figures.rows);
report.budget({ what: "event → list", value: median(figures.list), limit: 5, unit: "ms" });
report.budget({ what: "event → all that the view asks", value: median(figures.view), limit: 5, unit: "ms" });
report.finish();
