/** How much memory the servers, the daemon and all other processes of a user take for 1, 3 and 10 folders. */
import { deskProcesses } from "../faults/desk-processes.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { startScriptedModel, script } from "../support/scripted-model.ts";
import { memoryOf } from "./support/processes.ts";
import { Report } from "./support/report.ts";

const COUNTS = [1, 3, 10];

const model = await startScriptedModel();
const first = await DaemonDesk.open(model);
const desks: DaemonDesk[] = [];
const figures = new Map<number, number>();
for (const count of COUNTS) {
  while (desks.length < count) await addFolder(desks.length === 0 ? first : first.elsewhere());
  const processes = deskProcesses(first.env["HOME"] ?? "");
  figures.set(
    count,
    processes.reduce((sum, { pid }) => sum + memoryOf(pid).proportional, 0),
  );
  console.log(
    `  ${count}: ${processes.map(({ kind, pid }) => `${kind} ${memoryOf(pid).proportional.toFixed(0)}`).join(", ")}`,
  );
}
for (const desk of desks) await desk.close();
await model.stop();

const [one, , ten] = COUNTS.map((count) => figures.get(count) ?? NaN);
const report = new Report("folders");
for (const [count, memory] of figures)
  report.figures(`all processes, ${count} ${count === 1 ? "folder" : "folders"}`, "MB", [memory]);
const further = ((ten ?? NaN) - (one ?? NaN)) / 9;
report.budget({ what: "each further folder", value: further, limit: 25, unit: "MB" });
report.finish();

/** Opens a window on another folder, and runs a task in it. */
async function addFolder(desk: DaemonDesk): Promise<void> {
  desks.push(desk);
  const { calls } = desk.window().folder;
  await calls.connect();
  const { id } = await calls.launch({
    prompt: script([{ text: "Done." }]),
    description: "Look into it",
    agent: "general",
    parentSessionID: await calls.ensureSession(),
    launchedBy: "person",
  });
  await calls.output(id, { block: true });
}
