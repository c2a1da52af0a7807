/** How much heap the engine keeps for 1,000 finished tasks whose parent has been notified. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { until } from "../support/wait.ts";
import { median } from "./support/measure.ts";
import { addRunningTasks, memoryEngine } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const TASKS = 1_000;
const DELTAS = 50;
const ROUNDS = 5;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const held: number[] = [];
for (let round = 0; round < ROUNDS; round++) held.push(await measure());

const report = new Report("memory");
report.figures(`held by ${TASKS} finished tasks`, "MB", held);
report.budget({ what: `${TASKS} finished tasks`, value: median(held), limit: 10, unit: "MB" });
report.finish();

/** The heap that is freed with the engine; excludes what the in-memory server keeps. */
async function measure(): Promise<number> {
  const server = new MemoryServer();
  const holder: Holder = { engine: undefined };
  await runTasks(server, holder);
  const withEngine = heap();
  const engine = release(holder);
  await until("the engine to be collected", () => {
    collect();
    return engine.deref() === undefined;
  });
  return withEngine - heap();
}

function release(holder: Holder): WeakRef<TaskEngine> {
  const { engine } = holder;
  if (!engine) throw new Error("There is no engine.");
  engine.dispose();
  holder.engine = undefined;
  return new WeakRef(engine);
}

/** The only reference to the engine; an awaited value would be kept alive by the caller's frame. */
interface Holder {
  engine: TaskEngine | undefined;
}

async function runTasks(server: MemoryServer, holder: Holder): Promise<void> {
  const { parent, tasks } = await addRunningTasks(server, TASKS);
  const engine = memoryEngine(server);
  holder.engine = engine;
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
