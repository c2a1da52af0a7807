import assert from "node:assert/strict";
import { seatPath } from "../../src/bridge/writer-seat.ts";
import { tempDir } from "../support/temp.ts";
import { windowProcesses } from "../support/windows.ts";

describe("The election among processes", () => {
  it("of ten that start at once exactly one writes, in 20 rounds, each after a crash of the writer before", async function () {
    this.timeout(60_000);
    const seat = seatPath(tempDir("seat"), "http://127.0.0.1:1", "/work");
    const processes = [...(await windowProcesses(10))];
    const writers: number[] = [];
    for (let round = 0; round < 20; round++) {
      const roles = await Promise.all(processes.map((each) => each.tell({ type: "elect", seat })));
      writers.push(roles.filter(({ role }) => role === "writer").length);
      assert.equal(roles.filter(({ role }) => role === "reader").length, 9);
      // The others leave first, so that the crash leaves its socket to the next round.
      const writer = roles.findIndex(({ role }) => role === "writer");
      await Promise.all(
        processes.filter((_, index) => index !== writer).map((each) => each.tell({ type: "stop" })),
      );
      await processes[writer]?.kill();
      processes.splice(writer, 1, ...(await windowProcesses(1)));
    }
    assert.deepEqual(writers, Array<number>(20).fill(1));
    await Promise.all(processes.map((each) => each.kill()));
  });
});
