import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ensurePrivateFolder, sweepDrafts, writePrivateFile } from "../../../src/state/private-files.ts";
import { defaultStateFolder } from "../../../src/state/state-folder.ts";
import { readServerState } from "../../../src/opencode/server-files.ts";
import { privateSocket } from "../../../src/state/private-socket.ts";
import { StartLock } from "../../../src/state/start-lock.ts";
import { isSame, signalGroup, startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";

describe("Start lock", () => {
  it("is held by one process at a time", async () => {
    const path = join(tempDir(), "lock");
    const results = await Promise.all(Array.from({ length: 20 }, () => StartLock.tryAcquire(path)));
    const held = results.filter((lock) => lock !== undefined);
    assert.equal(held.length, 1);
    await held[0]?.release();
    assert.ok(await StartLock.tryAcquire(path));
  });

  for (const [what, leave] of [
    [
      "of a process that has ended",
      (path: string) => writeFileSync(path, JSON.stringify({ pid: goneProcess(), token: "t" })),
    ],
    [
      "of a process whose ID another process has now",
      (path: string) =>
        writeFileSync(path, JSON.stringify({ pid: process.pid, processStart: "before", token: "t" })),
    ],
    ["that is empty because the disk was full", (path: string) => writeFileSync(path, "")],
    [
      "that is too old",
      (path: string) => {
        writeFileSync(path, JSON.stringify({ pid: process.pid, token: "t" }));
        utimesSync(path, new Date(0), new Date(0));
      },
    ],
  ] as const)
    it(`is taken over if it is one ${what}`, async () => {
      const path = join(tempDir(), "lock");
      leave(path);
      assert.equal(await StartLock.tryAcquire(path), undefined);
      assert.ok(await StartLock.tryAcquire(path));
    });

  it("is left alone while another process takes it over", async () => {
    const path = join(tempDir(), "lock");
    const left = JSON.stringify({ pid: goneProcess(), token: "t" });
    writeFileSync(path, left);
    const taking = await StartLock.tryAcquire(`${path}.left`);
    assert.equal(await StartLock.tryAcquire(path), undefined);
    assert.equal(readFileSync(path, "utf8"), left);
    await taking?.release();
    // Another process crashed during the takeover.
    writeFileSync(`${path}.left`, left);
    for (let attempt = 1; attempt <= 2; attempt++) assert.equal(await StartLock.tryAcquire(path), undefined);
    assert.ok(await StartLock.tryAcquire(path));
    assert.deepEqual(readdirSync(dirname(path)), ["lock"]);
  });

  it("is removed by a sweep if its holder has ended", async () => {
    const folder = tempDir();
    await StartLock.tryAcquire(join(folder, "held.lock"));
    writeFileSync(join(folder, "left.lock"), JSON.stringify({ pid: goneProcess(), token: "t" }));
    writeFileSync(join(folder, "server.json"), "{}");
    await StartLock.sweep(folder);
    assert.deepEqual(readdirSync(folder).sort(), ["held.lock", "server.json"]);
  });

  it("is not released by a holder that lost it", async () => {
    const path = join(tempDir(), "lock");
    const lock = await StartLock.tryAcquire(path);
    writeFileSync(path, "another's");
    await lock?.release();
    assert.equal(readFileSync(path, "utf8"), "another's");
  });
});

function goneProcess(): number {
  return spawnSync(process.execPath, ["-e", ""]).pid;
}

describe("Private files", () => {
  it("are readable only by this user and leave no drafts", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = join(tempDir(), "a", "b");
    await ensurePrivateFolder(folder);
    const file = join(folder, "state.json");
    await writePrivateFile(file, "one");
    await writePrivateFile(file, "two");
    assert.equal(readFileSync(file, "utf8"), "two");
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(folder), ["state.json"]);
  });

  it("that a killed process left half-written are removed, and those that this one couldn't remove", async () => {
    const folder = tempDir();
    const draft = (pid: number): string => `tasks.json.${pid}.0123456789ab.tmp`;
    const names = [draft(process.ppid), "tasks.json", "notes.tmp"];
    for (const name of [draft(goneProcess()), draft(process.pid), ...names])
      writeFileSync(join(folder, name), "");
    await sweepDrafts(folder);
    assert.deepEqual(readdirSync(folder).sort(), names.sort());
  });

  it("close a folder that is open to others, and refuse a link", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = join(tempDir(), "open");
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    await ensurePrivateFolder(folder);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    const link = join(tempDir(), "link");
    symlinkSync(folder, link);
    await assert.rejects(ensurePrivateFolder(link), /not a folder/);
  });

  it("are in each system's folder for state", () => {
    const home = "/home/me";
    assert.equal(
      defaultStateFolder({ platform: "linux", env: {}, home }),
      "/home/me/.local/state/opencode-async-agents",
    );
    assert.equal(
      defaultStateFolder({ platform: "linux", env: { XDG_STATE_HOME: "/s" }, home }),
      "/s/opencode-async-agents",
    );
    assert.match(defaultStateFolder({ platform: "darwin", env: {}, home }), /Library\/Application Support/);
    assert.equal(
      defaultStateFolder({ platform: "win32", env: { LOCALAPPDATA: "C:\\L" }, home: "C:\\me" }),
      "C:\\L\\opencode-async-agents",
    );
  });

  it("keep the socket's path short enough, in a private folder with an unpredictable name", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = tempDir();
    assert.equal(await privateSocket(folder, "short.sock"), join(folder, "short.sock"));
    const deep = join(folder, "state".repeat(20));
    const all = await Promise.all(["1", "2", "3"].map((name) => privateSocket(deep, `${name}.sock`)));
    const [made = "", ...others] = new Set(all.map((socket) => dirname(socket)));
    assert.deepEqual(others, [], "one folder for all");
    try {
      assert.ok(Buffer.byteLength(all[0] ?? "") < 104);
      assert.equal(statSync(made).mode & 0o777, 0o700);
      const elsewhere = await privateSocket(join(folder, "other".repeat(20)), "1.sock");
      assert.notEqual(dirname(elsewhere), made, "its name cannot be foreseen");
      rmdirSync(dirname(elsewhere));
    } finally {
      rmdirSync(made);
    }
  });

  it("are ignored if they contain something else", async () => {
    const path = join(tempDir(), "state.json");
    assert.equal(await readServerState(path), undefined);
    for (const text of ["", "{", "{}", '{"v":1}']) {
      writeFileSync(path, text);
      assert.equal(await readServerState(path), undefined);
    }
  });
});

describe("The start of a process", () => {
  before(function () {
    if (process.platform === "win32") this.skip();
  });

  it("is the same for each query, and differs between processes", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    try {
      const [own, its] = await Promise.all([startOf(process.pid), startOf(child.pid ?? 0)]);
      assert.ok(own && its);
      assert.equal(await startOf(process.pid), own);
      assert.notEqual(its, own);
      assert.ok(await isSame(child.pid ?? 0, its));
      assert.ok(!(await isSame(child.pid ?? 0, own)));
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("is unknown once the process has ended, and then equals nothing", async () => {
    const gone = goneProcess();
    assert.equal(await startOf(gone), undefined);
    assert.ok(!(await isSame(gone, undefined)));
  });
});

describe("A group of processes", () => {
  it("counts as gone if signalling it is not permitted, as on macOS before its processes are reaped", () => {
    const { kill } = process;
    process.kill = () => {
      throw Object.assign(new Error("kill EPERM"), { code: "EPERM" });
    };
    try {
      assert.equal(signalGroup(1_000_000, "SIGKILL"), false);
    } finally {
      process.kill = kill;
    }
  });
});
