/** How time grows with the number of tasks: for twice as many tasks, at most a little more than twice the time. */
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { computed, interleaved, median, timed } from "./support/measure.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const SIZES = [1_250, 2_500, 5_000] as const;
/** What the noise of the machine may add to linear growth. */
const TOLERANCE = 1.5;
const GROWTH = (SIZES[2] / SIZES[0]) * TOLERANCE;

interface World {
  readonly size: number;
  readonly server: MemoryServer;
  readonly parent: string;
  readonly tasks: readonly string[];
  readonly engine: TaskEngine;
}

const worlds = await Promise.all(SIZES.map(create));
const report = new Report("growth");
await measure("tasks read at connect", { rounds: 7, warmUp: 1 }, connect);
await measure("a parent's tasks listed", { rounds: 31, warmUp: 5 }, async ({ engine, parent }) =>
  computed(() => engine.list(parent)),
);
let revision = 1_000;
await measure("a task changed", { rounds: 31, warmUp: 5 }, change);
for (const { engine } of worlds) engine.dispose();
report.finish();

async function create(size: number): Promise<World> {
  const server = new MemoryServer();
  const { parent, tasks } = await addRunningTasks(server, size);
  const engine = memoryEngine(server);
  const world = { size, server, parent, tasks, engine };
  await engine.connect();
  return world;
}

async function connect({ server }: World): Promise<number> {
  const engine = memoryEngine(server);
  const session = new ActiveSession(engine, server, strictLogger);
  const took = await timed(async () => {
    await engine.connect();
    await session.refresh();
  });
  session.dispose();
  engine.dispose();
  return took;
}

async function change({ server, tasks }: World): Promise<number> {
  const session = await server.session(tasks[tasks.length >> 1] ?? "");
  if (session?.task.kind !== "task") throw new Error("There is no such task.");
  const record = { ...session.task.record, revision: ++revision };
  const event = { type: "session-changed", session: { ...session, task: { kind: "task", record } } } as const;
  // Stops before the test's own store copies all tasks.
  const start = performance.now();
  server.emit(event);
  return performance.now() - start;
}

/** Adds the figures for each size, and the budget for the growth from the smallest to the largest. */
async function measure(
  what: string,
  rounds: Parameters<typeof interleaved>[0],
  run: (world: World) => Promise<number>,
): Promise<void> {
  const jobs = Object.fromEntries(worlds.map((world) => [String(world.size), () => run(world)]));
  const figures = await interleaved(rounds, jobs);
  const medians = SIZES.map((size) => median(figures[size] ?? []));
  for (const size of SIZES) report.figures(`${what}, ${size}`, "ms", figures[size] ?? []);
  const [small = 0, , large = 0] = medians;
  report.budget({
    what: `${what}: ${SIZES[2]} / ${SIZES[0]}`,
    value: large / small,
    limit: GROWTH,
    unit: "×",
  });
}
