/**
 * Twenty tasks, and two hundred, launched at once until their parent is notified of every end, compared to the minimal
 * requests for that.
 */
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import {
  createParent,
  launchBare,
  launchFrom,
  post,
  quiet,
  startBench,
  told,
} from "./support/real-server.ts";
import { Report } from "./support/report.ts";

const SIZES = [
  { tasks: 20, rounds: 7, warmUp: 1 },
  { tasks: 200, rounds: 5, warmUp: 0 },
];

const bench = await startBench();
const { server, window } = bench;

async function run(all: (parent: string) => Promise<unknown>): Promise<number> {
  const parent = await createParent(server);
  const took = await timed(() => all(parent));
  await quiet(bench, parent);
  return took;
}

async function launchAndTell(parentSessionID: string, count: number): Promise<void> {
  const allTold = told(window, parentSessionID, count);
  await Promise.all(times(count, () => window.engine.launch(launchFrom(parentSessionID))));
  await allTold;
}

/** Notifies the parent once per end, as soon as the server reports a session as idle, without reading its answer. */
async function launchAndTellBare(parent: string, count: number): Promise<void> {
  const idle = new Set<string>();
  const waiting = new Map<string, () => void>();
  const subscription = window.connection.server.onEvent((event) => {
    if (event.type !== "session-status" || event.status.type !== "idle") return;
    idle.add(event.sessionID);
    waiting.get(event.sessionID)?.();
  });
  await Promise.all(
    times(count, async () => {
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

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

const report = new Report("twenty");
for (const { tasks, ...rounds } of SIZES) {
  const figures = await interleaved(rounds, {
    bare: () => run((parent) => launchAndTellBare(parent, tasks)),
    engine: () => run((parent) => launchAndTell(parent, tasks)),
  });
  const ratio = ratios(figures.engine, figures.bare);
  const what = `${tasks} tasks / bare`;
  report.figures(`${tasks} bare launches and notices`, "ms", figures.bare);
  report.figures(`${tasks} tasks launched and told`, "ms", figures.engine);
  report.figures(what, "×", ratio);
  report.budget({ what, value: median(ratio), limit: 1.3, unit: "×" });
}
await bench.stop();
report.finish();
