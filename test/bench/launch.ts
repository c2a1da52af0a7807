/** How long launching a task takes, compared to the two requests that it needs at least. */
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { createParent, launchBare, launchFrom, quiet, startBench } from "./support/real-server.ts";
import { Report } from "./support/report.ts";

const bench = await startBench();
const { server, window } = bench;

/** Measures each launch in a new session, and waits until all of its consequences are over. */
async function launch(start: (parent: string) => Promise<unknown>): Promise<number> {
  const parent = await createParent(server);
  const took = await timed(() => start(parent));
  await quiet(bench, parent);
  return took;
}

const figures = await interleaved(
  { rounds: 31, warmUp: 5 },
  {
    bare: () => launch((parent) => launchBare(server, parent)),
    engine: () => launch((parentSessionID) => window.engine.launch(launchFrom(parentSessionID))),
  },
);
await bench.stop();

const ratio = ratios(figures.engine, figures.bare);
const report = new Report("launch");
report.figures("POST /session, prompt_async", "ms", figures.bare);
report.figures("TaskEngine.launch", "ms", figures.engine);
report.figures("launch / bare", "×", ratio);
report.budget({ what: "launch / bare", value: median(ratio), limit: 1.3, unit: "×" });
report.finish();
