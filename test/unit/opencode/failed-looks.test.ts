import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publishEntry, readLivingEntries, removeStale } from "../../../src/bridge/endpoint-entries.ts";
import { endOrphan } from "../../../src/opencode/end-orphan.ts";
import { serverFiles, writeServerState } from "../../../src/opencode/server-files.ts";
import { ServerProcess } from "../../../src/opencode/server-process.ts";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { DaemonServer } from "../../../src/rpc/daemon-server.ts";
import { endDaemon } from "../../../src/rpc/reach-daemon.ts";
import {
  endTree,
  isAlive,
  isSame,
  membersOf,
  startOf,
  type DescribedProcess,
} from "../../../src/state/processes.ts";
import { StartLock } from "../../../src/state/start-lock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { daemonEntry, FakeHost, silentLogger } from "../rpc/fake-host.ts";
import { failLooks, type FailingLooks } from "./failing-looks.ts";
import { FakeClock } from "./fake-clock.ts";

describe("A look at a process that fails", () => {
  const { platform } = process;
  let looks: FailingLooks | undefined;
  let child: ChildProcess | undefined;
  before(function () {
    if (platform === "win32") this.skip();
  });
  afterEach(() => {
    looks?.stop();
    looks = undefined;
    child?.kill("SIGKILL");
    child = undefined;
    Object.defineProperty(process, "platform", { value: platform });
  });

  /** A process in a group of its own, and when it started. */
  async function spawned(): Promise<{ pid: number; processStart: string }> {
    child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {
      stdio: "ignore",
      detached: true,
    });
    const { pid = 0 } = child;
    return { pid, processStart: (await startOf(pid)) ?? assert.fail("not running") };
  }

  /** What the look at this process fails with. */
  const failure = { message: /^(EMFILE|EAGAIN): too many$/ };

  it("says nothing about the process, unlike one that finds none", async () => {
    const { pid, processStart } = await spawned();
    looks = failLooks(pid);
    await assert.rejects(startOf(pid), failure);
    await assert.rejects(isSame(pid, processStart), failure);
    looks.stop();
    assert.ok(await isSame(pid, processStart));
  });

  it("says nothing either where it is another program that looks", async () => {
    Object.defineProperty(process, "platform", { value: "darwin" });
    const { pid, processStart } = await spawned();
    assert.ok(await isSame(pid, processStart));
    looks = failLooks(pid);
    await assert.rejects(isSame(pid, processStart), failure);
    looks.stop();
    assert.equal(await startOf(spawnSync(process.execPath, ["-e", ""]).pid), undefined);
  });

  it("says nothing about a group of processes", async function () {
    if (platform !== "linux") return this.skip();
    const { pid } = await spawned();
    assert.deepEqual(await membersOf(pid), [pid]);
    looks = failLooks(pid);
    await assert.rejects(membersOf(pid), failure);
  });

  it("doesn't make a lock that is held a stale one, and doesn't keep a free one from being taken", async () => {
    const path = join(tempDir(), "lock");
    const held = JSON.stringify({ ...(await spawned()), token: "t" });
    writeFileSync(path, held);
    looks = failLooks(child?.pid ?? 0);
    for (let attempt = 1; attempt <= 2; attempt++) assert.equal(await StartLock.tryAcquire(path), undefined);
    assert.equal(readFileSync(path, "utf8"), held);
    looks.stop();
    looks = failLooks(process.pid);
    const lock = await StartLock.tryAcquire(`${path}.other`);
    assert.ok(lock);
    await lock.release();
  });

  it("removes no endpoint from the list, but nothing is sent there", async () => {
    const folder = join(tempDir(), "state");
    const { pid } = await spawned();
    const entry = { directories: ["/work"], server: "http://127.0.0.1:1", port: 1, token: "t", openedAt: 0 };
    await publishEntry(folder, { ...entry, pid });
    looks = failLooks(pid);
    await assert.rejects(removeStale(folder), failure);
    assert.deepEqual(await readLivingEntries(folder), []);
    looks.stop();
    assert.equal((await readLivingEntries(folder)).length, 1);
  });

  it("ends no server", async () => {
    const path = join(tempDir(), "server.json");
    const { pid, processStart } = await spawned();
    const state = { url: "http://127.0.0.1:1", password: "secret", pid, processStart, version: "1.18.33" };
    await writeServerState(path, state);
    looks = failLooks(pid);
    await assert.rejects(endOrphan(path), failure);
    assert.ok(isAlive(pid));
    assert.ok(readFileSync(path, "utf8"));
  });

  it("at the start of a server leaves its process and its file alone if nothing else tells that it is the one", async () => {
    Object.defineProperty(process, "platform", { value: "darwin" });
    const path = join(tempDir(), "server.json");
    const { pid } = await spawned();
    await writeServerState(path, { url: "http://127.0.0.1:1", password: "secret", pid });
    await endOrphan(path);
    assert.ok(isAlive(pid));
    assert.ok(readFileSync(path, "utf8"));
    child?.kill("SIGKILL");
    await until("its end", () => !isAlive(pid));
    await endOrphan(path);
    assert.throws(() => readFileSync(path), { code: "ENOENT" });
  });

  it("at a server that was joined leaves its process alone if nothing else tells that it is the one", async () => {
    Object.defineProperty(process, "platform", { value: "darwin" });
    const { pid } = await spawned();
    const server = await joined({ pid });
    await server.stop();
    assert.equal(await ended(), "SIGINT");
  });

  it("at a server that was joined leaves alone the process that has its ID once it has ended", async () => {
    const { pid, processStart } = await spawned();
    const server = await joined({ pid, processStart });
    // As for a process of another user, which it may be.
    looks = failLooks(pid, "EACCES");
    await server.exited;
    assert.equal(await ended(), "SIGINT");
  });

  /** The signal that has ended the process, which gets another one now. */
  function ended(): Promise<string> {
    child?.kill("SIGINT");
    return until("its end", () => child?.signalCode);
  }

  /** A server with this process that the daemon has joined. */
  async function joined(described: DescribedProcess): Promise<ServerProcess> {
    const files = serverFiles(tempDir(), "0");
    await writeServerState(files.state, {
      url: "http://127.0.0.1:1",
      password: "secret",
      version: "1.18.33",
      ...described,
    });
    return (await ServerProcess.join(files)) ?? assert.fail("not joined");
  }

  it("doesn't keep the daemon from starting", async () => {
    const stateFolder = join(tempDir(), "state");
    looks = failLooks(process.pid);
    const server = await DaemonServer.open({
      stateFolder,
      host: new FakeHost(),
      version: "1.2.0",
      clock: new FakeClock(),
      logger: silentLogger,
    });
    assert.ok(server);
    server.dispose();
    assert.deepEqual(
      readdirSync(new DaemonFiles(stateFolder).folder).filter((name) => name.endsWith(".lock")),
      [],
    );
  });

  it("doesn't end the wait for the end of a daemon", async () => {
    const stateFolder = join(tempDir(), "state");
    const { pid, processStart } = await spawned();
    const files = new DaemonFiles(stateFolder);
    await writeEntry(files, daemonEntry({ pid, processStart }));
    looks = failLooks(pid);
    const clock = new FakeClock();
    let isOver = false;
    const ending = endDaemon({ stateFolder, clock }, pid).finally(() => (isOver = true));
    ending.catch(() => undefined);
    await until("a look", () => isOver || (looks?.failed === 1 && clock.pending === 1));
    assert.equal(isOver, false);
    looks.stop();
    await until("the end", () => (clock.advance(50), isOver));
    await ending;
  });
});

describe("The end of a process tree on Windows", () => {
  it("is no error if the system's tool can't be started and the process has ended", async function () {
    if (process.platform === "win32") return this.skip();
    const { kill } = process;
    let attempts = 0;
    process.kill = () => {
      attempts++;
      throw Object.assign(new Error("kill ESRCH"), { code: "ESRCH" });
    };
    try {
      endTree(1_000_000);
      await until("the attempt", () => attempts > 0);
    } finally {
      process.kill = kill;
    }
  });
});
