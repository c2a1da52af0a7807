import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Scenario } from "../faults/plan.ts";
import { withClock } from "../faults/set-clock.ts";
import { runRound, type Outcome } from "../faults/round.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

/** One of each scenario. `npm run faults` runs many more. */
const ROUNDS: readonly (readonly [Scenario, number])[] = [
  ["kills", 2007],
  ["stops", 1],
  ["two windows", 1],
  ["strangers", 1],
  ["disk", 1],
  ["descriptors", 1],
  ["clock", 1],
  ["network", 1],
];
const AT_ONCE = 4;

describe("faults at random moments", function () {
  this.timeout(240_000);

  it("include a daemon whose clock is really set", async () => {
    const file = join(tempDir("clock"), "offset");
    const desk = withClock(await DaemonDesk.open({ url: "http://127.0.0.1:9" }), file);
    const hours = (): number[] =>
      readFileSync(join(desk.stateFolder, "daemon.log"), "utf8")
        .split("\n")
        .flatMap((line) => /^(\S+Z) /.exec(line)?.[1] ?? [])
        .map((time) => Math.round((Date.parse(time) - Date.now()) / 3_600_000));
    const window = desk.window();
    await window.folder.calls.join();
    assert.deepEqual(new Set(hours()), new Set([0]));
    for (const offset of [5, -3]) {
      writeFileSync(file, String(offset * 3_600_000));
      await until("a line of then", async () => {
        desk.window({}, {}, undefined, tempDir("work"));
        return hours().at(-1) === offset;
      });
    }
    await desk.close();
  });

  it("lose no work, end no task falsely, notify each parent once, and leave nothing behind", async function () {
    if (process.platform !== "linux") return this.skip();
    const model = await startScriptedModel();
    const outcomes: Outcome[] = [];
    const rounds = [...ROUNDS];
    const lane = async (): Promise<void> => {
      for (let round = rounds.shift(); round; round = rounds.shift()) {
        const outcome = await runRound(model, ...round);
        if (outcome) outcomes.push(outcome);
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    } finally {
      await model.stop();
    }
    const failed = outcomes.filter(({ faults }) => faults.length > 0);
    assert.deepEqual(
      failed.map(({ scenario, seed, plan, faults }) => ({ scenario, seed, plan, faults })),
      [],
    );
  });
});
