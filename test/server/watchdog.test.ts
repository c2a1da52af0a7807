import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { english } from "../../src/engine/sentence.ts";
import { Lease } from "../../src/opencode/lease.ts";
import { serverFiles } from "../../src/opencode/server-files.ts";
import type { ServerFiles } from "../../src/opencode/server-files.ts";
import { isAlive } from "../../src/state/processes.ts";
import { startWatchdog } from "../../src/opencode/start-watchdog.ts";
import { encodeMessage, readWatchdogMessages } from "../../src/opencode/watchdog/lease-protocol.ts";
import type { WatchdogMessage } from "../../src/opencode/watchdog/lease-protocol.ts";
import { startServer } from "../../src/opencode/watchdog/server-process.ts";
import { openCodeBinary } from "../support/opencode.ts";
import { until } from "../support/wait.ts";
import { Desk, failureOf, fakeServer, isGone, watchdogBundle } from "./watchdog-support.ts";

describe("Watchdog", function () {
  this.timeout(60_000);
  let desk: Desk;
  const leases: Lease[] = [];
  afterEach(async () => {
    for (const lease of leases.splice(0)) lease.release();
    await desk.close();
  });

  /** Starts a watchdog as a window does, but takes no lease. */
  async function start(
    executable: string,
    graceMs: number,
    env: Record<string, string> = {},
  ): Promise<ServerFiles> {
    desk = await Desk.open({ graceMs, env });
    const files = await serverFiles(desk.stateFolder, desk.directory);
    const program = { execPath: process.execPath, script: await watchdogBundle(), env: desk.env };
    const { directory } = desk;
    await startWatchdog(program, { directory, executable, files, startTimeoutMs: 30_000, graceMs });
    return files;
  }
  async function leaseOn(files: ServerFiles) {
    const lease = await Lease.open(files.socket);
    assert.ok(lease);
    leases.push(lease);
    const heard: WatchdogMessage[] = [];
    lease.listen((message) => heard.push(message));
    return {
      lease,
      heard,
      hears: (type: string) => until(type, () => heard.find((one) => one.type === type), 30_000),
    };
  }
  /** Looks without taking a lease, which would begin the grace period anew. */
  const isServed = (files: ServerFiles) => existsSync(files.socket);

  it("ends the server when it is told to end itself", async () => {
    const { hears } = await leaseOn(await start(openCodeBinary(), 60_000));
    await hears("ready");
    const state = desk.state();
    assert.ok(state);
    process.kill(state.watchdogPid, "SIGTERM");
    await hears("stopping");
    await until("the end", () => isGone(state));
    assert.equal(desk.state(), undefined);
  });

  it("ends a server that never had a lease", async () => {
    const files = await start(openCodeBinary(), 100);
    await until("the end", () => !isServed(files));
    assert.equal(desk.state(), undefined);
  });

  it("forgets the grace period when a lease is taken within it", async () => {
    const files = await start(fakeServer, 400);
    const first = await leaseOn(files);
    await first.hears("ready");
    const pid = desk.state()?.pid ?? 0;
    first.lease.release();
    const second = await leaseOn(files);
    await second.hears("ready");
    const another = await startAnother(400);
    await until("the end of a grace period that began later", () => !isServed(another));
    assert.ok(isAlive(pid));
    second.lease.release();
    await until("the end", () => !isAlive(pid));
  });

  /** A watchdog without any lease, to measure time by. */
  async function startAnother(graceMs: number): Promise<ServerFiles> {
    const files = await serverFiles(desk.stateFolder, `${desk.directory}/.`);
    const program = { execPath: process.execPath, script: await watchdogBundle(), env: desk.env };
    const { directory } = desk;
    const config = { directory, executable: fakeServer, files, startTimeoutMs: 30_000, graceMs };
    await startWatchdog(program, config);
    return files;
  }

  it("is one for a folder, however many are started", async () => {
    const files = await start(fakeServer, 500);
    const program = { execPath: process.execPath, script: await watchdogBundle(), env: desk.env };
    const config = {
      directory: desk.directory,
      executable: fakeServer,
      files,
      startTimeoutMs: 1_000,
      graceMs: 500,
    };
    await startWatchdog(program, config);
    const { lease, hears } = await leaseOn(files);
    await hears("ready");
    lease.release();
  });

  it("keeps its password to this user, and its own setting out of the server's environment", async function () {
    if (process.platform !== "linux") return this.skip();
    const files = await start(openCodeBinary(), 100);
    const { lease, hears } = await leaseOn(files);
    await hears("ready");
    const state = desk.state();
    assert.ok(state);
    assert.equal(statSync(files.state).mode & 0o777, 0o600);
    assert.equal(statSync(desk.stateFolder).mode & 0o777, 0o700);
    const environment = readFileSync(`/proc/${state.pid}/environ`, "utf8").split("\0");
    assert.ok(environment.includes(`OPENCODE_SERVER_PASSWORD=${state.password}`));
    assert.ok(!environment.some((entry) => entry.startsWith("ELECTRON_RUN_AS_NODE")));
    for (const pid of [state.pid, state.watchdogPid])
      assert.ok(!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(state.password));
    lease.release();
  });

  it("ends a server whose group cannot be signalled any more, as macOS says of zombies", async function () {
    if (process.platform === "win32") return this.skip();
    desk = await Desk.open();
    const { directory, env } = desk;
    const { signal } = new AbortController();
    const server = await startServer({ executable: fakeServer, directory, env, timeoutMs: 30_000, signal });
    const { kill } = process;
    process.kill = (pid, name) => {
      kill(pid, name);
      if (pid < 0) throw Object.assign(new Error("kill EPERM"), { code: "EPERM" });
      return true;
    };
    try {
      await server.stop();
      assert.ok(!server.isRunning);
    } finally {
      process.kill = kill;
    }
  });

  it("says why when it cannot run at all", async () => {
    desk = await Desk.open();
    const files = await serverFiles(desk.stateFolder, desk.directory);
    const program = {
      execPath: process.execPath,
      script: join(desk.directory, "missing.cjs"),
      env: desk.env,
    };
    const config = { directory: desk.directory, executable: "x", files, startTimeoutMs: 1_000, graceMs: 100 };
    const failure = await failureOf(startWatchdog(program, config));
    assert.equal(failure.code, "start-failed");
    assert.match(english(failure.message), /missing\.cjs/);
  });
});

describe("Lease protocol", () => {
  it("finds messages however the text is cut, and passes over what it does not know", () => {
    const heard: WatchdogMessage[] = [];
    const read = readWatchdogMessages((message) => heard.push(message));
    const text = `${encodeMessage({ type: "ready", run: "1" })}garbage\n{"type":"from-the-future"}\n${encodeMessage({ type: "stopping" })}`;
    for (const character of text) read(character);
    assert.deepEqual(heard, [{ type: "ready", run: "1" }, { type: "stopping" }]);
  });
});
