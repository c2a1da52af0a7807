import assert from "node:assert/strict";
import { finishReason, readFinish } from "../../../src/opencode/finish.ts";

describe("Why a model stopped", () => {
  it("is read from what OpenCode wrote, and written as it would", () => {
    const read = ["tool-calls", "length", "content-filter", "stop", "unknown", undefined].map(readFinish);
    assert.deepEqual(read, ["tools", "cut", "cut", "end", "end", undefined]);
    for (const finish of ["tools", "cut", "end"] as const)
      assert.equal(readFinish(finishReason(finish)), finish);
  });
});
