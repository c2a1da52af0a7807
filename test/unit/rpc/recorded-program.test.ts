import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readProgram, recordProgram } from "../../../src/rpc/recorded-program.ts";
import { tempDir } from "../../support/temp.ts";

describe("The program of the last daemon", () => {
  it("is known until either of its files is gone", async () => {
    const folder = tempDir("program");
    assert.equal(await readProgram(folder), undefined);
    const [execPath, script] = [join(folder, "node"), join(folder, "daemon.cjs")];
    const program = { execPath, script, version: "1.0.0" };
    for (const missing of [execPath, script]) {
      for (const path of [execPath, script]) writeFileSync(path, "");
      await recordProgram(folder, program);
      assert.deepEqual(await readProgram(folder), program);
      rmSync(missing);
      assert.equal(await readProgram(folder), undefined);
    }
  });
});
