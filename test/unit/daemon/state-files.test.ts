import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StateFile } from "../../../src/daemon/state-files.ts";
import type { Tombstone } from "../../../src/engine/find-task.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { tempDir } from "../../support/temp.ts";
import { settings } from "../rpc/fake-host.ts";

const GONE: Tombstone = { id: "ses_1", description: "Gone", parentSessionID: "ses_0" };
const RECORD = { id: "ses_2", revision: 3 } as TaskRecord;

describe("what the daemon keeps of a folder", () => {
  let folder: string;
  let warnings: string[];

  beforeEach(() => {
    folder = tempDir("state");
    warnings = [];
  });

  const logger = {
    debug() {},
    info() {},
    warn: (message: string) => void warnings.push(message),
    error: (message: string) => void warnings.push(message),
  };
  const open = (directory = "/work"): Promise<StateFile> => StateFile.open(folder, directory, logger);

  it("is kept per folder in a file that only this user can read", async () => {
    const state = await open();
    const buried: Tombstone[] = [];
    state.onDidBury((tombstone) => buried.push(tombstone));
    state.save([GONE]);
    state.saveUnsettled([RECORD]);
    await state.written();
    assert.deepEqual(buried, [GONE]);
    const again = await open();
    assert.deepEqual([again.load(), again.loadUnsettled()], [[GONE], [RECORD]]);
    assert.deepEqual((await open("/other")).load(), []);
    const [name = ""] = readdirSync(folder);
    if (process.platform !== "win32") assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
    assert.deepEqual(warnings, []);
  });

  it("includes whether the folder is used", async () => {
    const state = await open();
    assert.equal(state.isUsed, false);
    state.setUsed(true);
    state.takeOver({ tombstones: [GONE], unsettled: [] });
    await state.written();
    assert.equal((await open()).isUsed, true);
  });

  it("includes the settings to open it again without a window, and no secrets", async () => {
    const state = await open();
    state.keepSettings({ ...settings, password: "secret", watched: true });
    await state.written();
    assert.deepEqual((await open()).settings, { ...settings, watched: false });
  });

  it("takes over what an earlier version kept elsewhere, but prefers its own records", async () => {
    const state = await open();
    state.save([GONE]);
    state.saveUnsettled([RECORD]);
    const older: Tombstone = { id: "ses_3", description: "Gone before", parentSessionID: "ses_0" };
    const settled = { id: "ses_4", revision: 1 } as TaskRecord;
    state.takeOver({ tombstones: [older], unsettled: [{ ...RECORD, revision: 2 }, settled] });
    await state.written();
    const again = await open();
    assert.deepEqual(again.load(), [older, GONE]);
    assert.deepEqual(again.loadUnsettled(), [RECORD, settled]);
  });

  it("is empty if the file cannot be used, with a warning", async () => {
    const state = await open();
    state.save([GONE]);
    await state.written();
    const [name = ""] = readdirSync(folder);
    for (const text of ["{", '{"v":2}', '{"v":1,"tombstones":[1],"unsettled":[]}']) {
      writeFileSync(join(folder, name), text);
      assert.deepEqual((await open()).load(), []);
    }
    assert.equal(warnings.length, 3);
  });

  it("stays in memory if it cannot be written, with a warning", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await state.written();
    assert.equal(warnings.length, 1);
    assert.deepEqual(state.load(), [GONE]);
  });

  it("that could not be written is written with the next change", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await state.written();
    assert.equal(warnings.length, 1);
    mkdirSync(folder, { mode: 0o700 });
    state.setUsed(true);
    await state.written();
    assert.deepEqual((await open()).load(), [GONE]);
  });
});
