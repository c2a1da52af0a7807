import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { takeHandedOver, writeHandedOver } from "../../../src/daemon/handed-over.ts";
import { tempDir } from "../../support/temp.ts";
import { folder } from "../rpc/fake-host.ts";

describe("what one daemon hands to the next", () => {
  let stateFolder: string;
  let file: string;
  let lost: unknown[];

  beforeEach(() => {
    stateFolder = tempDir("state");
    file = join(stateFolder, "handed-over.json");
    lost = [];
  });

  const take = async (now = Date.now()): Promise<readonly string[]> =>
    (await takeHandedOver(stateFolder, now, (error) => lost.push(error))).map(({ directory }) => directory);

  it("is taken once", async () => {
    await writeHandedOver(stateFolder, [folder("/one"), folder("/other")]);
    assert.deepEqual(await take(), ["/one", "/other"]);
    assert.deepEqual(await take(), []);
    assert.deepEqual(lost, []);
  });

  it("is taken without a folder that the next one doesn't understand", async () => {
    await writeHandedOver(stateFolder, [folder("/one"), folder("/other")]);
    writeFileSync(file, readFileSync(file, "utf8").replace('"directory":"/one"', '"directory":1'));
    assert.deepEqual(await take(), ["/other"]);
    assert.equal(lost.length, 1);
  });

  it("is given up if it is no list of folders", async () => {
    for (const text of ["{", "{}"]) {
      writeFileSync(file, text);
      assert.deepEqual(await take(), []);
      assert.ok(!existsSync(file));
    }
    assert.equal(lost.length, 2);
  });

  it("is kept while it can't be read", async () => {
    mkdirSync(file);
    await assert.rejects(take(), { code: "EISDIR" });
    assert.ok(existsSync(file));
    rmdirSync(file);
  });

  it("is removed, but not used, if the next one begins much later", async () => {
    await writeHandedOver(stateFolder, [folder("/one")]);
    assert.deepEqual(await take(Date.now() + 600_000), []);
    assert.ok(!existsSync(file));
  });
});
