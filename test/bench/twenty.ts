/** Twenty tasks launched at once until their parent knows of the end of each, beside the requests it takes at least. */
import { createSession } from "../support/engine.ts";
import { interleaved, median, timed } from "./support/measure.ts";
import { launchBare, launchInput, post, quiet, startBench } from "./support/real-server.ts";
import { Report } from "./support/report.ts";

const TASKS = 20;

const bench = await startBench();
const { server, window } = bench;

async function run(all: (parent: string) => Promise<unknown>): Promise<number> {
  const parent = await createSession(server);
  const took = await timed(() => all(parent));
  await quiet(bench, parent);
  return took;
}

async function launchAndTell(parentSessionID: string): Promise<void> {
  const { engine } = window;
  const isTold = (): boolean =>
    engine.list(parentSessionID).filter(({ notice }) => notice.state === "delivered").length === TASKS;
  const told = new Promise<void>((resolve) => {
    const subscription = engine.onDidChange(() => {
      if (!isTold()) return;
      subscription.dispose();
      resolve();
    });
  });
  await Promise.all(twenty(() => engine.launch({ ...launchInput, parentSessionID })));
  await told;
}

/** Tells the parent once per end, as soon as the server says that a session is idle, whatever its answer was. */
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

const report = new Report("twenty");
report.figures(`${TASKS} bare launches and notices`, "ms", figures.bare);
report.figures(`${TASKS} tasks launched and told`, "ms", figures.engine);
report.budget({
  what: "tasks / bare",
  value: median(figures.engine) / median(figures.bare),
  limit: 1.3,
  unit: "×",
});
report.finish();
