/**
 * Twenty tasks launched at once until their parent is notified of every end, compared to the minimal requests for that.
 */
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import {
  createParent,
  launchBare,
  launchInput,
  post,
  quiet,
  startBench,
  told,
} from "./support/real-server.ts";
import { Report } from "./support/report.ts";

const TASKS = 20;

const bench = await startBench();
const { server, window } = bench;

async function run(all: (parent: string) => Promise<unknown>): Promise<number> {
  const parent = await createParent(server);
  const took = await timed(() => all(parent));
  await quiet(bench, parent);
  return took;
}

async function launchAndTell(parentSessionID: string): Promise<void> {
  const allTold = told(window, parentSessionID, TASKS);
  await Promise.all(twenty(() => window.engine.launch({ ...launchInput, parentSessionID })));
  await allTold;
}

/** Notifies the parent once per end, as soon as the server reports a session as idle, without reading its answer. */
async function launchAndTellBare(parent: string): Promise<void> {
  const idle = new Set<string>();
  const waiting = new Map<string, () => void>();
  const subscription = window.connection.server.onEvent((event) => {
    if (event.type !== "session-status" || event.status.type !== "idle") return;
    idle.add(event.sessionID);
    waiting.get(event.sessionID)?.();
  });
  await Promise.all(
    twenty(async () => {
      const id = await launchBare(server, parent);
      if (!idle.has(id)) await new Promise<void>((resolve) => waiting.set(id, resolve));
      const parts = [
        { type: "text", text: "A task has finished." },
        { type: "text", text: "Done.", synthetic: true },
      ];
      await post(server, `/session/${parent}/prompt_async`, { agent: "build", parts });
    }),
  );
  subscription.dispose();
}

function twenty<T>(make: () => T): T[] {
  return Array.from({ length: TASKS }, make);
}

const figures = await interleaved(
  { rounds: 7, warmUp: 1 },
  { bare: () => run(launchAndTellBare), engine: () => run(launchAndTell) },
);
await bench.stop();

const ratio = ratios(figures.engine, figures.bare);
const report = new Report("twenty");
report.figures(`${TASKS} bare launches and notices`, "ms", figures.bare);
report.figures(`${TASKS} tasks launched and told`, "ms", figures.engine);
report.figures("tasks / bare", "×", ratio);
report.budget({ what: "tasks / bare", value: median(ratio), limit: 1.3, unit: "×" });
report.finish();
