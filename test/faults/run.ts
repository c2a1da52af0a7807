/**
 * `npm run faults -- --rounds 100 --seed 1 --parallel 2`: kills the daemon, the server and the window at
 * random moments, lets a user go on each time, and counts what did not come right. A round depends on its seed alone,
 * as far as processes can; the seed of a failed one is shown, `--rounds 1 --seed S` repeats it.
 */
import { cpSync } from "node:fs";
import { parseArgs } from "node:util";
import { startScriptedModel } from "../support/scripted-model.ts";
import { runRound, type Fault, type Outcome } from "./round.ts";

const { values } = parseArgs({
  options: {
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
const model = await startScriptedModel();
const outcomes: Outcome[] = [];
let next = firstSeed;

async function runLane(): Promise<void> {
  while (next < firstSeed + rounds) {
    const seed = next++;
    const outcome = await runRound(model, seed);
    outcomes.push(outcome);
    const { plan, faults, ms, stateFolder } = outcome;
    console.log(`${faults.length > 0 ? "✖" : "✔"} seed ${seed}, ${Math.round(ms / 1000)} s: ${plan}`);
    for (const { fault, detail } of faults) console.log(`    ${fault}: ${detail}`);
    if (values.keep !== undefined) cpSync(stateFolder, `${values.keep}/${seed}`, { recursive: true });
  }
}

await Promise.all(Array.from({ length: parallel }, runLane));
await model.stop();

const count = (fault: Fault): number =>
  outcomes.flatMap(({ faults }) => faults).filter((one) => one.fault === fault).length;
console.table({
  "first seed": firstSeed,
  rounds: outcomes.length,
  kills: outcomes.reduce((sum, { kills }) => sum + kills, 0),
  lost: count("lost"),
  "falsely ended": count("falsely ended"),
  "parents told twice": count("told twice"),
  "parents told never": count("told never"),
  "left over": count("left over"),
  "starts blocked": count("blocked"),
});
process.exitCode = outcomes.some(({ faults }) => faults.length > 0) ? 1 : 0;
