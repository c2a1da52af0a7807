import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { systemClock } from "../../../src/rpc/clock.ts";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles, type DaemonEntry } from "../../../src/rpc/daemon-files.ts";
import { endDaemon, isOlder } from "../../../src/rpc/reach-daemon.ts";
import { isAlive, isSame, startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";
import { daemonEntry } from "./fake-host.ts";

describe("A version", () => {
  for (const [older, newer] of [
    ["1.9.0", "1.10.0"],
    ["1.2.3", "1.2.4"],
    ["1.2.3", "2.0.0"],
    ["1.2", "1.2.1"],
    ["1.2.0-1", "1.2.0-2"],
  ] as const)
    it(`${older} is older than ${newer}, and not the other way round`, () => {
      assert.deepEqual([isOlder(older, newer), isOlder(newer, older)], [true, false]);
    });

  it("isn't older than itself, however many zeros it ends with", () => {
    assert.deepEqual(
      [isOlder("1.2.0", "1.2.0"), isOlder("1.2", "1.2.0"), isOlder("1.2.0", "1.2")],
      [false, false, false],
    );
  });
});

describe("The end of the daemon's process", function () {
  let stateFolder: string;
  let child: ChildProcess | undefined;

  before(function () {
    // Windows doesn't tell when a process started.
    if (process.platform === "win32") this.skip();
  });

  beforeEach(() => {
    stateFolder = join(tempDir("rpc"), "state");
  });

  afterEach(() => {
    child?.kill("SIGKILL");
    child = undefined;
  });

  /** A process described as the daemon. */
  async function described(facts: Partial<DaemonEntry> = {}): Promise<number> {
    child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(child, "spawn");
    const { pid = NaN } = child;
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ pid, ...facts }));
    return pid;
  }

  const end = (linkedPid?: number): Promise<void> =>
    endDaemon({ stateFolder, clock: systemClock }, linkedPid);

  it("is nothing to wait for if no daemon is described", async () => {
    await end();
  });

  it("has come when the call returns", async () => {
    const pid = await described();
    const processStart = await startOf(pid);
    assert.ok(processStart);
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ pid, processStart }));
    await end();
    assert.equal(await isSame(pid, processStart), false);
  });

  it("doesn't come to another process that has its ID by now", async () => {
    const pid = await described({ processStart: "another start" });
    await end();
    assert.equal(isAlive(pid), true);
  });

  it("doesn't come to a process of which nobody knows what it is, and the user is told which one", async () => {
    const pid = await described();
    const text = `Can't tell whether process ${pid} is the background process. Stop it yourself.`;
    await assert.rejects(end(), { name: "Refusal", code: "unavailable", message: text });
    assert.equal(isAlive(pid), true);
  });

  it("comes to a process whose start is unknown, if there is a connection to it", async () => {
    const pid = await described();
    assert.ok(child);
    const exit = once(child, "exit");
    await end(pid);
    assert.deepEqual(await exit, [null, "SIGKILL"]);
  });

  it("may have come already", async () => {
    const pid = await described();
    assert.ok(child);
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
    await end();
    await end(pid);
  });
});
