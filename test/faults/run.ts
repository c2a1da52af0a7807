/**
 * `npm run faults -- --rounds 100 --seed 1 --parallel 2`, or `npm run faults -- disk network --rounds 20` for the named
 * scenarios: lets processes, disk, clock and network fail at random moments while a user works, lets the user go on each
 * time, and counts what did not come right. A round depends on its scenario and seed alone, as far as processes can;
 * those of a failed one are shown, `npm run faults -- SCENARIO --rounds 1 --seed S` repeats it.
 */
import { cpSync } from "node:fs";
import { parseArgs } from "node:util";
import { startScriptedModel } from "../support/scripted-model.ts";
import { SCENARIOS, type Scenario } from "./plan.ts";
import { runRound, type Fault, type Outcome } from "./round.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** In all scenarios together. */
    rounds: { type: "string", default: "20" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    parallel: { type: "string", default: "1" },
    /** The folder for the logs of each round. */
    keep: { type: "string" },
  },
});
const [rounds, firstSeed, parallel] = [values.rounds, values.seed, values.parallel].map(Number) as [
  number,
  number,
  number,
];
const unknown = positionals.filter((name) => !SCENARIOS.includes(name as Scenario));
if (unknown.length > 0) {
  console.error(`No such scenario: ${unknown.join(", ")}. There are: ${SCENARIOS.join(", ")}.`);
  process.exit(2);
}
const scenarios = SCENARIOS.filter((name) => positionals.length === 0 || positionals.includes(name));
const model = await startScriptedModel();
const outcomes: Outcome[] = [];
let next = 0;

async function runLane(): Promise<void> {
  while (next < rounds) {
    const index = next++;
    const scenario = scenarios[index % scenarios.length] as Scenario;
    const seed = firstSeed + Math.floor(index / scenarios.length);
    const outcome = await runRound(model, scenario, seed);
    if (!outcome) {
      console.log(`- ${scenario}: not possible on this machine`);
      continue;
    }
    outcomes.push(outcome);
    const { plan, faults, ms, stateFolder } = outcome;
    const mark = faults.length > 0 ? "✖" : "✔";
    console.log(`${mark} ${scenario}, seed ${seed}, ${Math.round(ms / 1000)} s: ${plan}`);
    for (const { fault, detail } of faults) console.log(`    ${fault}: ${detail}`);
    if (values.keep !== undefined)
      cpSync(stateFolder, `${values.keep}/${scenario}-${seed}`, {
        recursive: true,
        filter: (path) => !path.endsWith(".sock"),
      });
  }
}

await Promise.all(Array.from({ length: parallel }, runLane));
await model.stop();

const rowOf = (counted: readonly Outcome[]): Record<string, number> => {
  const count = (fault: Fault): number =>
    counted.flatMap(({ faults }) => faults).filter((one) => one.fault === fault).length;
  return {
    rounds: counted.length,
    kills: counted.reduce((sum, { kills }) => sum + kills, 0),
    lost: count("lost"),
    "falsely ended": count("falsely ended"),
    "told twice": count("told twice"),
    "told never": count("told never"),
    orphans: count("left over"),
    blocked: count("blocked"),
    revealed: count("revealed"),
  };
};
console.log(`The first seed was ${firstSeed}.`);
console.table({
  ...Object.fromEntries(
    scenarios.map((name) => [name, rowOf(outcomes.filter(({ scenario }) => scenario === name))]),
  ),
  all: rowOf(outcomes),
});
process.exitCode = outcomes.some(({ faults }) => faults.length > 0) ? 1 : 0;
