/** What the daemon adds to a call, and what it takes of the machine with 1,000 tasks: real processes, real server. */
import { readFileSync } from "node:fs";
import { DaemonDesk } from "../support/daemon.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { median, quantile, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const TASKS = 1_000;
const CALLS = 500;
const ROUNDS = 5;
/** Of Linux, in bytes. */
const PAGE = 4_096;

const model = await startScriptedModel();
const desk = await DaemonDesk.open(model);
const { folder } = desk.window();
await folder.calls.connect();
const parentSessionID = await folder.calls.ensureSession();

/** The engine has the answer at hand, so its own time is next to nothing. */
const call = (): Promise<unknown> => folder.calls.agents();
await call();
const slowest: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const took: number[] = [];
  for (let count = 0; count < CALLS; count++) took.push(await timed(call));
  slowest.push(quantile(took, 0.95));
}

const bare = [memoryOf(desk.daemonPid())];
const tasks = Array.from({ length: TASKS }, (_, at) => ({ description: `Task ${at}`, parentSessionID }));
await seedTasks(desk, tasks);
await folder.calls.refresh();
await until("all tasks", () => folder.tasks.size === TASKS);
const held = [memoryOf(desk.daemonPid())];
await desk.close();
await model.stop();

const report = new Report("daemon");
report.figures("p95 of a call, there and back", "ms", slowest);
report.figures("daemon without a task", "MB", bare);
report.figures(`daemon with ${TASKS} tasks`, "MB", held);
report.budget({ what: "p95 of a call, there and back", value: median(slowest), limit: 5, unit: "ms" });
report.budget({ what: `daemon with ${TASKS} tasks`, value: median(held), limit: 90, unit: "MB" });
report.finish();

/** Resident memory, in megabytes. */
function memoryOf(pid: number | undefined): number {
  const [, pages] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
  return (Number(pages) * PAGE) / 1e6;
}
