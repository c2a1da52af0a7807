/** The time from a task's idle event until its parent is notified, without the server's response times. */
import { median, quantile } from "./support/measure.ts";
import { createParent, launchFrom, quiet, startBench, told } from "./support/real-server.ts";
import { recordFetch, timeWithoutRequests } from "../support/recorded-fetch.ts";
import { Report } from "./support/report.ts";

const TASKS = 40;
const WARM_UP = 5;

const recording = recordFetch();
const bench = await startBench();
const { server, window } = bench;
const { engine } = window;

const whole: number[] = [];
const own: number[] = [];
const requests: number[] = [];
for (let count = -WARM_UP; count < TASKS; count++) {
  const { idleAt, sentAt } = await tell();
  if (count < 0) continue;
  whole.push(sentAt - idleAt);
  own.push(timeWithoutRequests(recording.requests, idleAt, sentAt));
  requests.push(recording.requests.filter(({ start }) => start >= idleAt && start < sentAt).length);
}
recording.dispose();
await bench.stop();

const report = new Report("idle-to-notice");
report.figures("idle → notice sent", "ms", whole);
report.figures("requests meanwhile", "", requests);
report.figures("without the server's answers", "ms", own);
report.figures("the server's answers", "ms", [median(whole) - median(own)]);
report.budget({
  what: "p95 without the server's answers",
  value: quantile(own, 0.95),
  limit: 50,
  unit: "ms",
});
report.finish();

/** Runs one task in a new parent session; a notice counts as sent when its request begins. */
async function tell(): Promise<{ idleAt: number; sentAt: number }> {
  const parentSessionID = await createParent(server);
  const idle = new Map<string, number>();
  const subscription = window.connection.server.onEvent((event) => {
    if (event.type === "session-status" && event.status.type === "idle" && !idle.has(event.sessionID))
      idle.set(event.sessionID, performance.now());
  });
  const isTold = told(window, parentSessionID, 1);
  const { id } = await engine.launch(launchFrom(parentSessionID));
  await isTold;
  subscription.dispose();
  await quiet(bench, parentSessionID);
  if (engine.get(id)?.status !== "completed") throw new Error(`Task ${id} did not complete.`);
  const idleAt = idle.get(id);
  if (idleAt === undefined) throw new Error("The end of the task was not seen.");
  const call = `POST /session/${parentSessionID}/prompt_async`;
  const notice = recording.requests.find((request) => request.call === call && request.start >= idleAt);
  if (!notice) throw new Error("The notice was not sent.");
  return { idleAt, sentAt: notice.start };
}
