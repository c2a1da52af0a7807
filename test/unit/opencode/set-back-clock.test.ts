import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { awaitHealth } from "../../../src/opencode/health.ts";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { endDaemon, reachDaemon } from "../../../src/rpc/reach-daemon.ts";
import { ensurePrivateFolder } from "../../../src/state/private-files.ts";
import { startOf } from "../../../src/state/processes.ts";
import { StartLock } from "../../../src/state/start-lock.ts";
import { tempDir } from "../../support/temp.ts";
import { daemonEntry } from "../rpc/fake-host.ts";
import { FakeClock } from "./fake-clock.ts";

const HOUR_MS = 3_600_000;

describe("A system clock that is set back doesn't prolong", () => {
  let clock: FakeClock;
  let stateFolder: string;
  beforeEach(() => {
    clock = new FakeClock();
    stateFolder = join(tempDir(), "state");
  });

  it("the wait for a server's answer", async () => {
    let probes = 0;
    const { now } = Date;
    const abort = new AbortController();
    const silent = createServer((socket) => {
      // The first probe has begun.
      const setBack = now() - HOUR_MS;
      Date.now = () => setBack;
      if (++probes > 10) abort.abort();
      socket.destroy();
    });
    await once(silent.listen(0, "127.0.0.1"), "listening");
    try {
      const { port } = silent.address() as AddressInfo;
      const access = { url: `http://127.0.0.1:${port}`, username: "opencode" };
      assert.deepEqual(await awaitHealth(access, 150, abort.signal), { kind: "no-answer" });
      assert.ok(!abort.signal.aborted, "it went on and on");
    } finally {
      Date.now = now;
      silent.close();
    }
  });

  /** Sets the clock back, then lets at most this much time pass. Whether the promise was settled in it. */
  async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
    let isSettled = false;
    const settle = (): void => void (isSettled = true);
    promise.then(settle, settle);
    const isWaiting = async (): Promise<boolean> => {
      while (!isSettled && clock.pending === 0) await turn();
      return !isSettled;
    };
    await isWaiting();
    clock.set(-HOUR_MS);
    for (let passed = 0; passed <= ms && (await isWaiting()); passed += 50) clock.advance(50);
    return isSettled;
  }

  it("the wait for a daemon that another window starts", async () => {
    const files = new DaemonFiles(stateFolder);
    await ensurePrivateFolder(files.folder);
    const others = await StartLock.tryAcquire(files.lock);
    const place = { stateFolder, version: "1.2.0", clock, execPath: "/none", script: "/none", env: {} };
    const reaching = reachDaemon(place, { hear: () => undefined, onAnswer: () => undefined });
    reaching.catch(() => undefined);
    try {
      assert.ok(await settlesWithin(31_000, reaching));
      await assert.rejects(reaching, /it didn't respond/);
    } finally {
      await others?.release();
    }
  });

  it("the wait for the end of a daemon", async function () {
    if (process.platform === "win32") return this.skip();
    const { pid, kill } = process;
    const processStart = await startOf(pid);
    await ensurePrivateFolder(new DaemonFiles(stateFolder).folder);
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ pid, processStart }));
    // It doesn't end.
    process.kill = () => true;
    try {
      const ending = endDaemon({ stateFolder, clock }, pid);
      assert.ok(await settlesWithin(6_000, ending));
      await ending;
    } finally {
      process.kill = kill;
    }
  });
});
