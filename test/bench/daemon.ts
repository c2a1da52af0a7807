/**
 * What the daemon adds to a call, how much memory it uses with 1,000, 3,000 and 10,000 tasks, and how soon it is back
 * after it was killed; with real processes and a real server.
 */
import { DaemonDesk } from "../support/daemon.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { median, quantile, timed } from "./support/measure.ts";
import { memoryOf } from "./support/processes.ts";
import { Report } from "./support/report.ts";

const TASKS = 1_000;
const MORE = [3_000, 10_000];
const CALLS = 500;
const REFRESHES = 3;
const ROUNDS = 5;

const model = await startScriptedModel();
const desk = await DaemonDesk.open(model);
const { folder } = desk.window();
await folder.calls.connect();
const parentSessionID = await folder.calls.ensureSession();

/** The engine has this answer cached, so its own time is negligible. */
const call = (): Promise<unknown> => folder.calls.agents();
const daemon = (): number => desk.daemonPid() ?? 0;
await call();
const slowest: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const took: number[] = [];
  for (let count = 0; count < CALLS; count++) took.push(await timed(call));
  slowest.push(quantile(took, 0.95));
}

const bare = memoryOf(daemon()).resident;
await seed(TASKS);
const told = memoryOf(daemon()).resident;

const back: number[] = [];
const read: number[] = [];
const used: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  back.push(await timed(replaceDaemon));
  read.push(memoryOf(daemon()).resident);
  for (let count = 0; count < REFRESHES; count++) await folder.calls.refresh();
  used.push(memoryOf(daemon()).resident);
}
const more = new Map<number, number>();
for (const count of MORE) {
  await seed(count);
  await replaceDaemon();
  more.set(count, memoryOf(daemon()).resident);
}
await desk.close();
await model.stop();

const report = new Report("daemon");
report.figures("p95 of a call, there and back", "ms", slowest);
report.figures("killed, until the window is connected", "ms", back);
report.figures("daemon without a task", "MB", [bare]);
report.figures(`daemon that was told of ${TASKS} tasks`, "MB", [told]);
report.figures(`daemon that has read ${TASKS} tasks`, "MB", read);
report.figures(`… and read them ${REFRESHES} times more`, "MB", used);
for (const [count, memory] of more) report.figures(`daemon that has read ${count} tasks`, "MB", [memory]);
report.budget({ what: "p95 of a call, there and back", value: median(slowest), limit: 5, unit: "ms" });
report.budget({
  what: "killed, until the window is connected",
  value: median(back),
  limit: 2_000,
  unit: "ms",
});
report.budget({ what: `daemon with ${TASKS} tasks`, value: median([told, ...read]), limit: 90, unit: "MB" });
report.budget({ what: "daemon with 10,000 tasks", value: more.get(10_000) ?? NaN, limit: 200, unit: "MB" });
report.finish();

/** Adds finished tasks until there are this many, and has the daemon read them. */
async function seed(count: number): Promise<void> {
  const missing = Array.from({ length: count - folder.tasks.size }, (_, at) => ({
    description: `Task ${folder.tasks.size + at}`,
    parentSessionID,
  }));
  await seedTasks(desk, missing);
  await folder.calls.refresh();
  await until("all tasks", () => folder.tasks.size === count);
}

async function replaceDaemon(): Promise<void> {
  const killed = daemon();
  process.kill(killed, "SIGKILL");
  await until("the loss", () => folder.connection() !== "connected");
  await until("another daemon", () => ![0, killed].includes(daemon()) && folder.connection() === "connected");
}
