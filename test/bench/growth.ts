/**
 * How time grows with the number of tasks and the length of conversations, at three sizes each: for twice as many, at
 * most a little more than twice the time.
 */
import { join } from "node:path";
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { cutHistory } from "../../src/engine/fork/cut.ts";
import { inheritedHistory } from "../../src/engine/fork/inherited-history.ts";
import { forkPreamble } from "../../src/engine/fork/preamble.ts";
import type { Message } from "../../src/engine/server-model.ts";
import type { TokenCounter } from "../../src/engine/token-counter.ts";
import { ThreadTokenCounter } from "../../src/tokens/token-counter.ts";
import { arrange } from "../../src/ui/tree/arrangement.ts";
import { realClock } from "../support/engine.ts";
import { repository } from "../support/extension-host.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { conversation } from "./support/conversation.ts";
import { beyondLinear, computed, interleaved, type Rounds } from "./support/measure.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const TASKS = [1_250, 2_500, 5_000];
const BYTES = [1_250_000, 2_500_000, 5_000_000];
/** What the noise of the machine may add to linear growth. */
const TOLERANCE = 1.5;
/** How often a job that takes less than some milliseconds is run for one figure. */
const REPEATS = 20;
const LIMITS = { maxToolResultChars: 1_500, maxTokens: 100_000 };

interface World {
  readonly size: number;
  readonly server: MemoryServer;
  readonly parent: string;
  readonly tasks: readonly string[];
  readonly engine: TaskEngine;
}

interface Talk {
  readonly size: number;
  readonly messages: readonly Message[];
  readonly texts: readonly string[];
}

const report = new Report("growth");
const worlds = await Promise.all(TASKS.map(create));
await measure("tasks read at connect", worlds, { rounds: 7, warmUp: 1 }, connect);
await measure("a parent's tasks listed", worlds, { rounds: 31, warmUp: 5 }, ({ engine, parent }) =>
  repeated(() => engine.list(parent)),
);
await measure("rows put in their order", worlds, { rounds: 31, warmUp: 5 }, ({ engine, parent }) =>
  repeated(() => arrange(engine, engine.children(parent), "active")),
);
let revision = 1_000;
await measure("a task changed", worlds, { rounds: 31, warmUp: 5 }, change);
for (const { engine } of worlds) engine.dispose();

const instant: TokenCounter = { count: async (texts) => texts.map(({ length }) => Math.ceil(length / 4)) };
const thread = new ThreadTokenCounter({
  script: join(repository, "dist", "tokenizer.cjs"),
  clock: realClock,
});
const talks = BYTES.map(talk);
await measure("a history cut for a fork", talks, { rounds: 31, warmUp: 5 }, ({ messages }) =>
  computed(() =>
    cutHistory(inheritedHistory(messages), LIMITS, instant, undefined, (cut) => forkPreamble(cut)),
  ),
);
await measure("tokens counted", talks, { rounds: 5, warmUp: 1 }, ({ texts }) =>
  computed(() => thread.count(texts)),
);
thread.dispose();
report.finish();

function talk(size: number): Talk {
  const messages = conversation(size, { textLength: 500, resultLength: 18_000 });
  return { size, messages, texts: messages.map((message) => JSON.stringify(message)) };
}

async function create(size: number): Promise<World> {
  const server = new MemoryServer();
  const { parent, tasks } = await addRunningTasks(server, size);
  const engine = memoryEngine(server);
  const world = { size, server, parent, tasks, engine };
  await engine.connect();
  return world;
}

/** Milliseconds of CPU time of a job so short that a garbage collection in it would be most of its time. */
async function repeated(job: () => unknown): Promise<number> {
  const took = await computed(() => {
    for (let count = 0; count < REPEATS; count++) job();
  });
  return took / REPEATS;
}

async function connect({ server }: World): Promise<number> {
  const engine = memoryEngine(server);
  const session = new ActiveSession(engine, server, strictLogger);
  const took = await computed(async () => {
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

/** Adds the figures for each size, and the budget for how they grow from each size to the next. */
async function measure<T extends { readonly size: number }>(
  what: string,
  worlds: readonly T[],
  rounds: Rounds,
  run: (world: T) => number | Promise<number>,
): Promise<void> {
  const jobs = Object.fromEntries(worlds.map((world) => [String(world.size), () => run(world)]));
  const figures = await interleaved(rounds, jobs);
  const sizes = worlds.map(({ size }) => size);
  for (const size of sizes)
    report.figures(`${what}, ${size.toLocaleString("en")}`, "ms", figures[size] ?? []);
  // What disturbs a round only adds to its time, and disturbs longer jobs more often.
  const fastest = sizes.map((size) => Math.min(...(figures[size] ?? [])));
  report.budget({ what, value: beyondLinear(sizes, fastest), limit: TOLERANCE, unit: "× linear" });
}
