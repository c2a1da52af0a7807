/** What an idle window costs the server: no requests without a task, hardly any CPU with a silent one. */
import { setTimeout as delay } from "node:timers/promises";
import { openWindow, type EngineWindow } from "../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { median, ratios } from "./support/measure.ts";
import { cpuTime } from "./support/processes.ts";
import { createParent, launchFrom, post, quiet } from "./support/real-server.ts";
import { recordFetch } from "../support/recorded-fetch.ts";
import { Report } from "./support/report.ts";

const REQUESTS_OVER_MS = 16_000;
const CPU_OVER_MS = 20_000;
/** By then the effects of starting are over, in milliseconds. */
const SETTLE_MS = 10_000;
const ROUNDS = 5;
/** One idle server differs from the next, and from itself a minute later, by a third. */
const SERVERS = 8;
const defaults = { pollInterval: 5_000, stallWarning: 120_000 };
const silence = script([{ hang: true }]);

if (process.platform !== "linux")
  throw new Error("The CPU time of a process is read from /proc, so on Linux alone.");
const model = await startScriptedModel({ fallback: () => ({ text: "Done." }) });
const servers = await Promise.all(Array.from({ length: SERVERS }, () => startOpenCode({ model })));
const [first] = servers;
if (!first) throw new Error("There is no server.");

const unasked = await requestsWithoutTask(first);
const figures = await cpuWithSilentTask();
await Promise.all(servers.map((server) => server.stop()));
await model.stop();

const ratio = ratios(figures.window, figures.bare);
const report = new Report("idle");
report.figures(`requests in ${REQUESTS_OVER_MS / 1000} s without a task`, "", [unasked]);
report.figures("server CPU, silent session alone", "ms", figures.bare);
report.figures("server CPU, silent task and a window", "ms", figures.window);
report.budget({ what: "requests without a task", value: unasked, limit: 0, unit: "" });
report.figures("server CPU with a window / without", "×", ratio);
report.budget({ what: "server CPU with a window / without", value: median(ratio), limit: 1.1, unit: "×" });
report.finish();

/** Counts the requests of a window whose view is visible and whose only task has ended. */
async function requestsWithoutTask(server: OpenCodeServer): Promise<number> {
  // The window keeps the `fetch` that it finds when it opens.
  const recording = recordFetch();
  const window = await openWindow(server, defaults);
  const parentSessionID = await createParent(server);
  await window.engine.launch(launchFrom(parentSessionID));
  await quiet({ server, window }, parentSessionID);
  const before = recording.requests.length;
  if (before === 0) throw new Error("Requests are not recorded.");
  await delay(REQUESTS_OVER_MS);
  recording.dispose();
  window.dispose();
  const asked = recording.requests.slice(before);
  for (const { call } of asked) console.log(`  asked without a task: ${call}`);
  return asked.length;
}

/**
 * Measures all servers at the same time, so that disturbances of the machine affect all of them. Each round opens a window
 * on one half of them and then on the other. A figure is the sum for all servers.
 */
async function cpuWithSilentTask(): Promise<{ bare: number[]; window: number[] }> {
  const bare: number[] = [];
  const window: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const halves = [await cpuWithSome(0), await cpuWithSome(1)];
    bare.push(sum(halves.map((half) => half.bare)));
    window.push(sum(halves.map((half) => half.window)));
  }
  return { bare, window };
}

/** @param half which servers have a window: those with an even place, or those with an odd one */
async function cpuWithSome(half: 0 | 1): Promise<{ bare: number; window: number }> {
  const [window, bare] = await Promise.all([
    Promise.all(servers.filter((_, place) => place % 2 === half).map(cpuWithWindow)),
    Promise.all(servers.filter((_, place) => place % 2 !== half).map(cpuAlone)),
  ]);
  return { bare: sum(bare), window: sum(window) };
}

function sum(values: readonly number[]): number {
  return values.reduce((left, right) => left + right, 0);
}

async function cpuAlone(server: OpenCodeServer): Promise<number> {
  const session = await startSilentSession(server);
  const used = await cpuOf(server);
  await post(server, `/session/${session}/abort`, {});
  return used;
}

async function cpuWithWindow(server: OpenCodeServer): Promise<number> {
  const window = await openWindow(server, defaults);
  const task = await startSilentTask(server, window);
  const used = await cpuOf(server);
  await window.engine.cancel(task, "agent");
  window.dispose();
  return used;
}

/** Milliseconds of CPU time that the server uses from now on. */
async function cpuOf({ pid }: OpenCodeServer): Promise<number> {
  await delay(SETTLE_MS);
  const before = cpuTime(pid);
  await delay(CPU_OVER_MS);
  return cpuTime(pid) - before;
}

async function startSilentSession(server: OpenCodeServer): Promise<string> {
  const { id } = await post<{ id: string }>(server, "/session", { title: "Bare" });
  const parts = [{ type: "text", text: silence }];
  await post(server, `/session/${id}/prompt_async`, { agent: "general", parts });
  await model.waitForRequest(({ sessionID }) => sessionID === id);
  return id;
}

async function startSilentTask(server: OpenCodeServer, { engine }: EngineWindow): Promise<string> {
  const parentSessionID = await createParent(server);
  const { id } = await engine.launch({ ...launchFrom(parentSessionID), prompt: silence });
  await model.waitForRequest(({ sessionID }) => sessionID === id);
  return id;
}
