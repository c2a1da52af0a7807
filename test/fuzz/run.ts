/**
 * `npm run fuzz -- --cases 100000 --seed 1`, or `npm run fuzz -- events records --cases 5000` for the named targets:
 * sends hostile data to each part of the product that takes data from outside. The cases are divided between the
 * targets, and run in batches; a batch that fails shows the seed that repeats it.
 */
import { parseArgs } from "node:util";
import { fuzz, TARGETS } from "./targets.ts";

/** Cases after which a target starts anew, so that what earlier cases left does not slow it down. */
const BATCH = 500;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    cases: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const [cases, firstSeed] = [Number(values.cases), Number(values.seed)];
const names = TARGETS.map(({ name }) => name);
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0 || !(cases > 0) || !Number.isInteger(firstSeed)) {
  console.error(`Usage: npm run fuzz -- [--cases N] [--seed N] [${names.join(" | ")}]…`);
  process.exit(2);
}
const targets = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const each = Math.ceil(cases / targets.length);

const table: Record<string, object> = {};
for (const { name, failures, seconds } of await runAll())
  table[name] = { cases: each, "first seed": firstSeed, failures, seconds };
console.table(table);

async function runAll(): Promise<readonly { name: string; failures: number; seconds: number }[]> {
  const outcomes = [];
  for (const target of targets) {
    const begun = performance.now();
    let failures = 0;
    for (let done = 0, seed = firstSeed; done < each; done += BATCH, seed++) {
      const count = Math.min(BATCH, each - done);
      try {
        await fuzz(target, seed, count);
      } catch (error) {
        failures++;
        console.error(
          `✖ npm run fuzz -- ${target.name} --seed ${seed} --cases ${count}\n${described(error)}`,
        );
      }
    }
    if (failures > 0) process.exitCode = 1;
    outcomes.push({ name: target.name, failures, seconds: Math.round((performance.now() - begun) / 1000) });
  }
  return outcomes;
}

/** The failing case, and why it failed. */
function described(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].map((each) => (each instanceof Error ? each.stack?.slice(0, 3_000) : "")).join("\n");
}
