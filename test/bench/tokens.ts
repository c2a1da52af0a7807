/**
 * Compares counting the tokens of a 5 MB history that contains a run of 16,000 letters, including the start of the
 * thread, with js-tiktoken on the whole history. Also measures for how long the calling thread is blocked.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { ThreadTokenCounter } from "../../src/tokens/token-counter.ts";
import { realClock } from "../support/engine.ts";
import { repository } from "../support/extension-host.ts";
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const ROUNDS = 5;
const MESSAGES = 500;
const MESSAGE_LENGTH = 10_000;
const RUN_LENGTH = 16_000;
/**
 * js-tiktoken's time for a run grows slightly faster than the square of its length: half a minute for the whole run. So
 * it is extrapolated from a part.
 */
const TIMED_RUN_LENGTH = 4_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const script = join(repository, "dist", "tokenizer.cjs");
const reference = new Tiktoken(o200k);
const exact = (text: string): number => reference.encode(text, [], []).length;

const messages = history();
const run = randomText(RUN_LENGTH, 97, 26);
const withRun = [...messages, run];
const odd = [" ".repeat(1e6), "a".repeat(1e6), randomText(1e6, 97, 26), randomText(3e5, 0x4e00, 20_000)];
const tiny = Array.from({ length: 100_000 }, (_, index) => `word ${index}`);

await checkCounts();
const stretches = { history: [] as number[], odd: [] as number[], tiny: [] as number[] };
const figures = await interleaved(
  { rounds: ROUNDS, warmUp: 1 },
  {
    reference: async () => {
      const rest = await timed(() => messages.forEach(exact));
      const part = await timed(() => exact(run.slice(0, TIMED_RUN_LENGTH)));
      return rest + part * (RUN_LENGTH / TIMED_RUN_LENGTH) ** 2;
    },
    ours: () => count(withRun, stretches.history),
    odd: () => count(odd, stretches.odd),
    tiny: () => count(tiny, stretches.tiny),
  },
);

const ratio = ratios(figures.ours, figures.reference);
const report = new Report("tokens");
report.figures("js-tiktoken, history (reckoned)", "ms", figures.reference);
report.figures("ours, history", "ms", figures.ours);
report.figures("ours, runs of up to a million characters", "ms", figures.odd);
report.figures("ours, 100,000 short texts", "ms", figures.tiny);
report.figures("ours / js-tiktoken", "×", ratio);
report.budget({ what: "ours / js-tiktoken", value: median(ratio), limit: 0.1, unit: "×" });
for (const [name, values] of Object.entries(stretches)) {
  const counted = values.slice(-ROUNDS);
  report.figures(`longest stretch, ${name}`, "ms", counted);
  report.budget({ what: `longest stretch, ${name}`, value: median(counted), limit: 20, unit: "ms" });
}
report.finish();

/**
 * Milliseconds that a new counter takes, including the start of its thread. Adds the longest stretch in the meantime to
 * `longest`. Collects garbage first.
 */
async function count(texts: readonly string[], longest: number[]): Promise<number> {
  collect();
  const counter = new ThreadTokenCounter({ script, clock: realClock });
  const stop = watchStretches();
  const time = await timed(() => counter.count(texts));
  longest.push(stop());
  counter.dispose();
  return time;
}

/** Runs a timer every millisecond. The returned function stops it and returns the longest time between two runs. */
function watchStretches(): () => number {
  let longest = 0;
  let last = performance.now() - timeWithoutProcessor();
  const note = (): void => {
    const now = performance.now() - timeWithoutProcessor();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(note, 1);
  return () => {
    clearInterval(timer);
    note();
    return longest;
  };
}

/** Milliseconds that this thread was ready to run but had no processor; 0 if the system doesn't report it. */
function timeWithoutProcessor(): number {
  if (process.platform !== "linux") return 0;
  const [, nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}

/** Wrong counts would make the times meaningless. */
async function checkCounts(): Promise<void> {
  const counter = new ThreadTokenCounter({ script, clock: realClock });
  const counts = await counter.count(messages);
  counter.dispose();
  const expected = messages.map(exact);
  const wrong = counts.findIndex((tokens, index) => tokens !== expected[index]);
  if (wrong >= 0) throw new Error(`Message ${wrong}: ${counts[wrong]} tokens instead of ${expected[wrong]}.`);
}

/** Code and sentences in several languages, taken from a package that is installed anyway. */
function history(): string[] {
  const read = (...path: string[]): string =>
    readFileSync(join(repository, "node_modules", "typescript", "lib", ...path), "utf8");
  const sentences = ["de", "ja", "zh-cn", "ru"].map((language) =>
    read(language, "diagnosticMessages.generated.json"),
  );
  const all = [...sentences, read("lib.dom.d.ts"), read("typescript.js")].join("\n");
  return Array.from({ length: MESSAGES }, (_, index) =>
    all.slice(index * MESSAGE_LENGTH, (index + 1) * MESSAGE_LENGTH),
  );
}

/** Random characters: `kinds` different ones, starting at code `first`. */
function randomText(length: number, first: number, kinds: number): string {
  const units = Array.from({ length }, () => String.fromCharCode(first + Math.floor(Math.random() * kinds)));
  return units.join("");
}
