import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DaemonClient } from "../../src/rpc/daemon-client.ts";
import { isAlive } from "../../src/state/processes.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { startHaltingProxy } from "../support/halting-proxy.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("how long an idle daemon lives", function () {
  this.timeout(120_000);
  let model: ScriptedModel;
  /** The user's own, until the last test ends it. */
  let server: OpenCodeServer;
  let desk: DaemonDesk;

  before(async () => {
    model = await startScriptedModel();
    server = await startOpenCode({ model, password: null });
  });
  afterEach(() => desk?.close());
  after(async () => {
    await server?.stop();
    await model?.stop();
  });

  it("[BKG-3] it lives while a window comes back within the grace period; afterwards it ends, and its server too", async () => {
    const graceMs = 4_000;
    desk = await DaemonDesk.open(model, { graceMs });
    const first = desk.window();
    await first.folder.calls.connect();
    const [daemon = 0, own] = [desk.daemonPid(), desk.server()];
    first.close();
    const second = desk.window();
    await second.folder.calls.connect();
    assert.equal(desk.daemonPid(), daemon);

    second.close();
    const closed = performance.now();
    await until("the end of both", () => !isAlive(daemon) && !isAlive(own?.pid ?? 0));
    const lived = performance.now() - closed;
    assert.ok(lived >= graceMs, `${lived} ms`);
  });

  it("[BKG-3] it works, also on long forks, once an update has removed the extension that started it", async () => {
    desk = await DaemonDesk.open(model);
    const extension = tempDir("extension");
    cpSync(dirname(desk.place.script), extension, { recursive: true });
    const release = { version: "0.1.0", Client: DaemonClient, script: join(extension, "daemon.cjs") };
    const { calls } = desk.window({}, {}, release).folder;
    await calls.connect();
    rmSync(extension, { recursive: true });
    const { id } = await calls.launch({
      prompt: `${"A long story. ".repeat(20_000)}\n${script([{ text: "Read." }])}`,
      agent: "general",
      parentSessionID: await calls.ensureSession(),
      launchedBy: "person",
    });
    await until("the answer", async () => (await calls.output(id)).task.status === "completed", 30_000);
    const preview = await calls.previewFork({ sourceSessionID: id });
    assert.ok(preview.tokensBefore.tokens > 60_000, JSON.stringify(preview));
  });

  it("it stays while it cannot read whether tasks are running, and ends once it can", async () => {
    desk = await DaemonDesk.open(model, { graceMs: 300, directory: server.directory });
    const proxy = await startHaltingProxy(server.url);
    try {
      const window = desk.window({}, { server: { url: proxy.url, startTimeoutMs: 60_000 } });
      await window.folder.calls.connect();
      const daemon = desk.daemonPid() ?? 0;
      proxy.decide((request) =>
        request.startsWith("GET /session/status") ? { redirect: "http://127.0.0.1:1" } : "pass",
      );
      window.close();
      const failed = (): number => desk.log().match(/Couldn't read whether tasks are running/g)?.length ?? 0;
      await until("looks that fail", () => failed() >= 3, 30_000);
      assert.ok(isAlive(daemon));

      proxy.decide(() => "pass");
      await until("the end of the daemon", () => !isAlive(daemon), 20_000);
    } finally {
      proxy.close();
    }
  });

  it("[BKG-7] its log says that the user stopped the work, if something may still be running then", async () => {
    desk = await DaemonDesk.open(model, { directory: server.directory });
    const proxy = await startHaltingProxy(server.url);
    try {
      const window = desk.window({}, { server: { url: proxy.url, startTimeoutMs: 60_000 } });
      await window.folder.calls.connect();
      proxy.decide((request) =>
        request.startsWith("GET /session/status") ? { redirect: "http://127.0.0.1:1" } : "pass",
      );
      window.close();
      await until("that the window is gone", async () =>
        (await desk.status()).folders.every(({ windows }) => windows === 0),
      );
      await desk.stop();
      assert.match(
        desk.log(),
        /Leaving all tasks in .* to the user's server: the user stopped its background work\./,
      );
      assert.doesNotMatch(desk.log(), /no window has had it open/);
    } finally {
      proxy.close();
    }
  });

  it("[BKG-3] it ends although the user's own server has ended, as nothing of it is lost with the daemon", async () => {
    desk = await DaemonDesk.open(model, { graceMs: 300, directory: server.directory });
    const window = desk.window({}, { server: { url: server.url, startTimeoutMs: 60_000 } });
    await window.folder.calls.connect();
    const daemon = desk.daemonPid() ?? 0;
    await server.stop();
    await until("the loss", () => window.folder.connection() === "reconnecting");
    window.close();
    await until("the end of the daemon", () => !isAlive(daemon), 20_000);
    assert.doesNotMatch(desk.log(), /Couldn't read whether tasks are running/);
  });
});
