/** What additional windows on a folder cost the server's CPU, while one task is silent and another one streams. */
import { setTimeout as delay } from "node:timers/promises";
import { DaemonDesk, type DaemonWindow } from "../support/daemon.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { median, ratios } from "./support/measure.ts";
import { cpuTime } from "./support/processes.ts";
import { Report } from "./support/report.ts";

const ROUNDS = 5;
const FURTHER = 2;
/** The number of chunks that the task streams in each measurement. */
const CHUNKS = 1_000;
const SILENT_MS = 5_000;

const model = await startScriptedModel();
const desk = await DaemonDesk.open(model);
const window = desk.window();
const { calls } = window.folder;
await calls.connect();
const parentSessionID = await calls.ensureSession();
const input = { description: "Ours", agent: "general", parentSessionID, launchedBy: "person" } as const;
await measure();

const one: number[] = [];
const three: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  // Alternates the order, so that a server that slows down over time affects both alike.
  if (round % 2 === 0) one.push(await measure());
  three.push(await measureWithOthers());
  if (round % 2 === 1) one.push(await measure());
}
await desk.close();
await model.stop();

const ratio = ratios(three, one);
const report = new Report("windows");
report.figures("server CPU with one window", "ms", one);
report.figures("server CPU with three windows", "ms", three);
report.figures("three windows / one", "×", ratio);
report.budget({ what: "three windows / one", value: median(ratio), limit: 1.1, unit: "×" });
report.finish();

/** The server's CPU time in milliseconds. */
async function measure(): Promise<number> {
  const pid = desk.server()?.pid ?? 0;
  const before = cpuTime(pid);
  const { id } = await calls.launch({ ...input, prompt: script([{ text: "Done.", chunks: CHUNKS }]) });
  await calls.output(id, { block: true });
  await delay(SILENT_MS);
  return cpuTime(pid) - before;
}

async function measureWithOthers(): Promise<number> {
  const others: DaemonWindow[] = Array.from({ length: FURTHER }, () => desk.window());
  await Promise.all(others.map(({ folder }) => folder.calls.connect()));
  const figure = await measure();
  for (const other of others) other.close();
  return figure;
}
