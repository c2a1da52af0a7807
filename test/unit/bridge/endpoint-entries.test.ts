import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  publishEntry,
  readEntries,
  readLivingEntries,
  removeStale,
} from "../../../src/bridge/endpoint-entries.ts";
import { startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";

const entry = {
  directories: ["/work/ä b", "/other"],
  server: "http://127.0.0.1:4096",
  port: 40_000,
  token: "secret",
  pid: process.pid,
  openedAt: 1_700_000_000_000,
};

describe("Endpoint entries of windows", () => {
  let processStart: string | undefined;

  before(async () => {
    processStart = await startOf(process.pid);
  });

  /** The entry as it is read again. */
  const written = () => ({ v: 1, ...entry, ...(processStart !== undefined && { processStart }) });

  it("are read as they were published, until they are withdrawn", async () => {
    const folder = join(tempDir("entries"), "new");
    const first = await publishEntry(folder, entry);
    const second = await publishEntry(folder, { ...entry, port: 40_001 });
    const byPort = (await readEntries(folder)).toSorted((one, other) => one.port - other.port);
    assert.deepEqual(byPort, [written(), { ...written(), port: 40_001 }]);
    first.withdraw();
    first.withdraw();
    assert.deepEqual(await readEntries(folder), [{ ...written(), port: 40_001 }]);
    second.withdraw();
    assert.deepEqual(readdirSync(folder), []);
  });

  it("can be read only by this user", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = join(tempDir("entries"), "new");
    await publishEntry(folder, entry);
    const [name = ""] = readdirSync(folder);
    assert.match(name, /^window-[\w-]{12}\.json$/);
    assert.deepEqual(JSON.parse(readFileSync(join(folder, name), "utf8")), written());
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  it("are empty if the folder doesn't exist", async () => {
    const folder = join(tempDir("entries"), "missing");
    assert.deepEqual(await readEntries(folder), []);
    await removeStale(folder);
    assert.deepEqual(await readEntries(folder), []);
  });

  it("cannot be read from a file, which is an error", async () => {
    const file = join(tempDir("entries"), "file");
    writeFileSync(file, "");
    await assert.rejects(readEntries(file), { code: "ENOTDIR" });
  });

  it("are read despite broken files, files of other versions and other files", async () => {
    const folder = tempDir("entries");
    const good = JSON.stringify({ v: 1, ...entry });
    const files = {
      "window-cut.json": good.slice(0, 40),
      "window-empty.json": "",
      "window-null.json": "null",
      "window-newer.json": JSON.stringify({ v: 2, ...entry }),
      "window-tokenless.json": JSON.stringify({ v: 1, ...entry, token: undefined }),
      "window-port0.json": JSON.stringify({ v: 1, ...entry, port: 0 }),
      "window-port65536.json": JSON.stringify({ v: 1, ...entry, port: 65_536 }),
      "window-group.json": JSON.stringify({ v: 1, ...entry, pid: -1 }),
      "window-draft.json.0a1b2c.tmp": good,
      "server-1.json": good,
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    mkdirSync(join(folder, "window-folder.json"));
    await publishEntry(folder, entry);
    assert.deepEqual(await readEntries(folder), [written()]);
    await removeStale(folder);
    assert.equal(readdirSync(folder).length, Object.keys(files).length + 2);
  });

  it("are removed when their window's process has ended, and only then", async () => {
    const folder = tempDir("entries");
    await publishEntry(folder, { ...entry, pid: spawnSync(process.execPath, ["--version"]).pid });
    await publishEntry(folder, entry);
    assert.equal((await readEntries(folder)).length, 2);
    await removeStale(folder);
    assert.deepEqual(await readEntries(folder), [written()]);
  });

  it("are removed when another process has the ID of their window", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = tempDir("entries");
    await publishEntry(folder, entry);
    const [name = ""] = readdirSync(folder);
    const left = { ...written(), processStart: "an earlier one" };
    writeFileSync(join(folder, name), JSON.stringify(left));
    assert.deepEqual(await readEntries(folder), [left]);
    assert.deepEqual(await readLivingEntries(folder), []);
    await removeStale(folder);
    assert.deepEqual(readdirSync(folder), []);
  });
});
