import assert from "node:assert/strict";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { english } from "../../src/engine/sentence.ts";
import { deskProcesses } from "../faults/desk-processes.ts";
import { DaemonDesk, type DaemonWindow, type DeskOptions } from "../support/daemon.ts";
import { notices, realClock } from "../support/engine.ts";
import {
  script,
  startScriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { fill, freeze, mountSmall, unmount } from "../support/small-disk.ts";
import { until } from "../support/wait.ts";

/** For windows that have waited for an answer long enough after a few seconds. */
const hastyClock: Clock = { ...realClock, after: (ms, callback) => realClock.after(ms / 4, callback) };

describe("the daemon in trouble", function () {
  this.timeout(150_000);
  let model: ScriptedModel;
  let desk: DaemonDesk;
  let parent: string;
  /** Undoes what a test did to the machine. */
  let mend: () => void;

  before(async () => {
    model = await startScriptedModel();
  });
  beforeEach(() => {
    mend = () => undefined;
  });
  afterEach(async () => {
    mend();
    await desk?.close();
  });
  after(() => model?.stop());

  async function open(options: DeskOptions = {}): Promise<DaemonWindow> {
    desk = await DaemonDesk.open(model, options);
    const window = desk.window();
    await window.folder.calls.connect();
    parent = await window.folder.calls.ensureSession();
    return window;
  }

  const input = (...steps: readonly ScriptStep[]): LaunchInput => ({
    prompt: script(steps),
    description: "In trouble",
    agent: "general",
    parentSessionID: parent,
    launchedBy: "person",
  });

  const told = (count: number): Promise<unknown> =>
    until(`${count} notices`, async () => (await notices(desk, parent)).length === count, 30_000);

  it("suspended, is reported as silent also in a window opened later, and continues where it was", async function () {
    if (process.platform === "win32") return this.skip();
    const window = await open({ clock: hastyClock });
    const { id } = await window.folder.calls.launch(input({ text: "Slept.", gate: "slept" }));
    const daemon = desk.daemonPid() ?? 0;
    process.kill(daemon, "SIGSTOP");
    mend = () => process.kill(daemon, "SIGCONT");
    model.release("slept");
    const late = desk.window();
    await until("silence", () => window.client.state.kind === "silent", 20_000);
    await until("it for a window that is opened now", () => late.client.state.kind === "silent", 20_000);
    mend();
    for (const { client } of [window, late])
      await until("the answer", () => client.state.kind === "connected", 20_000);
    for (const { folder } of [window, late])
      await until("the task", () => folder.tasks.get(id)?.status === "completed");
    await told(1);
    assert.equal(desk.daemonPid(), daemon);
  });

  for (const [what, obstruct] of [
    ["full", fill],
    ["read-only", freeze],
  ] as const)
    it(`with a state folder that is ${what} reports the failure, leaves no server, and recovers`, async function () {
      const folder = mountSmall();
      if (folder === undefined) return this.skip();
      mend = () => unmount(folder);
      const window = await open({ stateFolder: folder });
      const { calls } = window.folder;
      const before = await calls.launch(input({ text: "Never.", gate: "never" }));
      // Otherwise the prompt would be sent again, and its turn would wait at the gate.
      await model.waitForRequest(({ sessionID }) => sessionID === before.id);
      const clear = obstruct(folder);
      if (!clear) return this.skip();
      mend = () => {
        clear();
        unmount(folder);
      };
      const { failure } = window.folder;

      // The server can be started again, but its state file can't be written.
      process.kill(desk.server()?.pid ?? 0, "SIGKILL");
      const serverFailure = await until("the server's failure", failure, 40_000);
      assert.match(english(serverFailure.message), /OpenCode didn't start: (ENOSPC|EPERM|EACCES|EROFS)/);
      const servers = () => deskProcesses(desk.env["HOME"] ?? "").filter(({ kind }) => kind === "server");
      await until("no server", () => servers().length === 0);

      const daemon = desk.daemonPid() ?? 0;
      process.kill(daemon, "SIGKILL");
      const daemonFailure = await until(
        "the daemon's failure",
        () => failure()?.code === "daemon-failed" && failure(),
        40_000,
      );
      assert.match(english(daemonFailure.message), /Can't use .*(ENOSPC|EPERM|EACCES|EROFS)|didn't start/);

      clear();
      await calls.connect();
      parent = await calls.ensureSession();
      await until(
        "the interrupted task",
        () => window.folder.tasks.get(before.id)?.status === "error",
        30_000,
      );
      const { id } = await calls.launch(input({ text: "Recovered." }));
      const { result } = await calls.output(id, { block: true });
      assert.equal(result, "Recovered.");
      await told(2);
    });
});
