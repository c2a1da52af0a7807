import assert from "node:assert/strict";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { RETRY_MS, StateFile } from "../../../src/daemon/state-files.ts";
import { UserFacingError } from "../../../src/engine/errors.ts";
import type { Tombstone } from "../../../src/engine/find-task.ts";
import type { PermissionRequest } from "../../../src/engine/server-model.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { settings } from "../rpc/fake-host.ts";

const GONE: Tombstone = { id: "ses_1", description: "Gone", parentSessionID: "ses_0" };
const RECORD = { id: "ses_2", revision: 3 } as TaskRecord;

describe("what the daemon keeps of a folder", () => {
  let folder: string;
  let warnings: string[];
  let clock: ManualClock;

  beforeEach(() => {
    folder = tempDir("state");
    warnings = [];
    clock = new ManualClock();
  });

  const logger = {
    debug() {},
    info() {},
    warn: (message: string) => void warnings.push(message),
    error: (message: string) => void warnings.push(message),
  };
  const open = (directory = "/work"): Promise<StateFile> =>
    StateFile.open(directory, { stateFolder: folder, clock, logger });

  it("includes the permissions that agents wait for, but none with a change of any size", async () => {
    const request = (id: string, diff: string): PermissionRequest => ({
      ...{ type: "permission", id, sessionID: "ses_1", permission: "edit", patterns: ["*"], always: [] },
      metadata: { diff },
      files: [{ path: "/work/a.ts", movedTo: "/work/b.ts" }],
      call: { messageID: "msg_1", callID: "call_1" },
    });
    const state = await open();
    assert.deepEqual(state.permissions, []);
    const small = request("per_1", "+a");
    state.keepPermissions([small, request("per_2", "+a".repeat(50_000))]);
    await state.close();
    const again = await open();
    assert.deepEqual(again.permissions, [small]);
    again.setUsed(true);
    again.setUsed(false);
    assert.deepEqual(again.permissions, []);
    assert.deepEqual(warnings, []);
  });

  it("is kept per folder in a file that only this user can read", async () => {
    const state = await open();
    const buried: Tombstone[] = [];
    state.onDidBury((tombstone) => buried.push(tombstone));
    state.save([GONE]);
    state.saveUnsettled([RECORD]);
    await state.close();
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
    await state.close();
    assert.equal((await open()).isUsed, true);
  });

  it("includes which server of the extension it uses, until it disconnects", async () => {
    const state = await open();
    state.setUsed(true, "0a");
    await state.close();
    assert.equal((await open()).serverKey, "0a");
    const [name = ""] = readdirSync(folder);
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, "utf8").replace("0a", "../0a"));
    const changed = await open();
    assert.deepEqual([changed.isUsed, changed.serverKey, warnings], [true, undefined, []]);
    const last = await open();
    last.setUsed(true, "0b");
    last.setUsed(false);
    await last.close();
    assert.equal((await open()).serverKey, undefined);
  });

  it("includes the settings to open it again without a window, and no secrets", async () => {
    const state = await open();
    const at = (url: string) => ({ ...settings, server: { ...settings.server, url } });
    state.keepSettings({ ...at("http://me:secret@127.0.0.1:1"), password: "secret", watched: true });
    await state.close();
    assert.deepEqual((await open()).settings, { ...at("http://me@127.0.0.1:1/"), watched: false });
    const [name = ""] = readdirSync(folder);
    assert.doesNotMatch(readFileSync(join(folder, name), "utf8"), /secret/);
  });

  it("takes over what an earlier version kept elsewhere, but prefers its own records", async () => {
    const state = await open();
    state.save([GONE]);
    state.saveUnsettled([RECORD]);
    const older: Tombstone = { id: "ses_3", description: "Gone before", parentSessionID: "ses_0" };
    const settled = { id: "ses_4", revision: 1 } as TaskRecord;
    state.takeOver({ tombstones: [older], unsettled: [{ ...RECORD, revision: 2 }, settled] });
    await state.close();
    const again = await open();
    assert.deepEqual(again.load(), [older, GONE]);
    assert.deepEqual(again.loadUnsettled(), [RECORD, settled]);
  });

  it("is empty if the file cannot be used, with a warning, and the file is put aside", async () => {
    const state = await open();
    state.save([GONE]);
    await state.close();
    const [name = ""] = readdirSync(folder);
    for (const text of ["{", '{"v":2}', '{"v":1,"tombstones":[1],"unsettled":[]}']) {
      writeFileSync(join(folder, name), text);
      assert.deepEqual((await open()).load(), []);
      assert.deepEqual(readdirSync(folder), [`${name}.invalid`]);
      assert.equal(readFileSync(join(folder, `${name}.invalid`), "utf8"), text);
    }
    assert.equal(warnings.length, 3);
  });

  it("isn't taken for empty if it can't be read for a moment, and the error says what to do", async () => {
    const state = await open();
    state.save([GONE]);
    await state.close();
    const [name = ""] = readdirSync(folder);
    const path = join(folder, name);
    renameSync(path, `${path}.moved`);
    mkdirSync(path);
    await assert.rejects(open(), (error) => {
      assert.ok(error instanceof UserFacingError);
      assert.match(error.message, /^Couldn't read what is kept of this folder: EISDIR/);
      assert.ok(error.message.endsWith(` Make ${path} readable or move it away, then try again.`));
      return true;
    });
    rmdirSync(path);
    renameSync(`${path}.moved`, path);
    assert.deepEqual((await open()).load(), [GONE]);
  });

  it("stays in memory if it cannot be written, with a warning", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await state.close();
    assert.equal(warnings.length, 1);
    assert.deepEqual(state.load(), [GONE]);
  });

  it("that could not be written is written a while later, as it is by then", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await until("the warning", () => warnings.length === 1);
    await clock.advance(RETRY_MS);
    await until("the next one", () => warnings.length === 2);
    state.setUsed(true);
    await until("the one of the change", () => warnings.length === 3);
    mkdirSync(folder, { mode: 0o700 });
    await clock.advance(RETRY_MS);
    const again = await until("the file", async () => {
      const read = await open();
      return read.isUsed && read;
    });
    assert.deepEqual(again.load(), [GONE]);
    assert.equal(clock.pending, 0);
  });

  it("that could not be written is tried once more at the end, but never after that", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await until("the warning", () => warnings.length === 1);
    await state.close();
    assert.equal(warnings.length, 2);
    assert.equal(clock.pending, 0);
  });

  it("is written at the end with what changes meanwhile, but with nothing that changes later", async () => {
    const state = await open();
    state.save([GONE]);
    const closed = state.close();
    await Promise.resolve();
    state.saveUnsettled([RECORD]);
    await closed;
    assert.deepEqual((await open()).loadUnsettled(), [RECORD]);
    state.setUsed(true);
    await state.close();
    assert.equal((await open()).isUsed, false);
  });

  it("that could not be written is written with the next change", async () => {
    const state = await open();
    rmSync(folder, { recursive: true });
    state.save([GONE]);
    await until("the warning", () => warnings.length === 1);
    mkdirSync(folder, { mode: 0o700 });
    state.setUsed(true);
    await state.close();
    assert.deepEqual((await open()).load(), [GONE]);
  });
});
