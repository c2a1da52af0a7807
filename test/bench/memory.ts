/**
 * How much heap finished tasks hold whose parent has been notified: 1,000 of them in the engine, and for three sizes in
 * the engine and in a window's mirror.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { TaskEngine } from "../../src/engine/engine.ts";
import type { FolderSnapshot } from "../../src/engine/folder-changes.ts";
import { ReadModel } from "../../src/engine/read-model.ts";
import { realClock } from "../support/engine.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { until } from "../support/wait.ts";
import { beyondLinear, median } from "./support/measure.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const SIZES = [1_000, 3_000, 10_000];
const DELTAS = 50;
const ROUNDS = 5;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const report = new Report("memory");
const engines: number[] = [];
const windows: number[] = [];
for (const tasks of SIZES) {
  // What is held differs little between rounds, and the largest size takes long.
  const rounds = tasks === SIZES[0] ? ROUNDS : 1;
  const held: number[] = [];
  const mirrors: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { engine, window } = await measure(tasks);
    held.push(engine);
    mirrors.push(window);
  }
  const count = tasks.toLocaleString("en");
  report.figures(`held by ${count} finished tasks, engine`, "MB", held);
  report.figures(`held by ${count} finished tasks, window`, "MB", mirrors);
  engines.push(median(held));
  windows.push(median(mirrors));
}
const [first = NaN] = engines;
const row = (what: string, value: number, limit: number, unit: string) =>
  report.budget({ what, value, limit, unit });
row("1,000 finished tasks", first, 10, "MB");
row("10,000 finished tasks, engine", engines.at(-1) ?? NaN, 50, "MB");
row("10,000 finished tasks, window", windows.at(-1) ?? NaN, 25, "MB");
row("growth of the engine's, per step", beyondLinear(SIZES, engines), 1.25, "×");
row("growth of the window's, per step", beyondLinear(SIZES, windows), 1.25, "×");
report.finish();

/** The heap in MB that is freed with the engine, and with a window's mirror of it; excludes what the server keeps. */
async function measure(tasks: number): Promise<{ readonly engine: number; readonly window: number }> {
  const server = new MemoryServer();
  const engine: Holder<TaskEngine> = { value: undefined };
  await runTasks(server, engine, tasks);
  const window: Holder<ReadModel> = { value: mirrorOf(engine) };
  const withWindow = heap();
  await release(window);
  const withEngine = heap();
  await release(engine);
  return { engine: withEngine - heap(), window: withWindow - withEngine };
}

/** Returns once the value has been collected. */
async function release<T extends { dispose(): void }>(holder: Holder<T>): Promise<void> {
  const value = dropped(holder);
  await until("what was released to be collected", () => {
    collect();
    return value.deref() === undefined;
  });
}

function dropped<T extends { dispose(): void }>(holder: Holder<T>): WeakRef<T> {
  const { value } = holder;
  if (!value) throw new Error("There is nothing to release.");
  value.dispose();
  holder.value = undefined;
  return new WeakRef(value);
}

/** The only reference to a value; an awaited one would be kept alive by the caller's frame. */
interface Holder<T> {
  value: T | undefined;
}

/** A window's mirror, from what it is sent when it opens the folder. */
function mirrorOf({ value: engine }: Holder<TaskEngine>): ReadModel {
  if (!engine) throw new Error("There is no engine.");
  const snapshot: FolderSnapshot = {
    connection: { kind: "disconnected" },
    sessions: engine.sessions().map((session) => ({ ...session, task: { kind: "task" } as const })),
    tasks: engine.allTasks(),
    subagents: engine.subagents.all(),
    requests: [],
    tombstones: [],
  };
  const mirror = new ReadModel(realClock, strictLogger);
  mirror.apply([{ type: "reset", snapshot: JSON.parse(JSON.stringify(snapshot)) as FolderSnapshot }]);
  return mirror;
}

async function runTasks(server: MemoryServer, holder: Holder<TaskEngine>, count: number): Promise<void> {
  const { parent, tasks } = await addRunningTasks(server, count);
  const engine = memoryEngine(server);
  holder.value = engine;
  await engine.connect();
  for (const sessionID of tasks) {
    const place = { sessionID, messageID: `msg_of_${sessionID}` };
    const partID = `prt_of_${sessionID}`;
    const part = { ...place, id: partID, type: "text", text: "", synthetic: false, start: 1 } as const;
    server.emit({ type: "part-changed", part });
    for (let index = 0; index < DELTAS; index++)
      server.emit({ type: "part-delta", ...place, partID, field: "text", delta: "a few words " });
    server.finish(sessionID, "Nothing is wrong with it. ".repeat(40));
  }
  const isTold = (): boolean => engine.list(parent).every(({ notice }) => notice.state === "delivered");
  await until("all tasks to be finished and told", isTold, 120_000);
}

/** MB of live objects. */
function heap(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed / 1e6;
}
