import assert from "node:assert/strict";
import { reopenFolder } from "../../src/plugin/reopen-folder.ts";
import { DaemonDesk, type DaemonWindow } from "../support/daemon.ts";
import { notices } from "../support/engine.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";

interface DeskFolder {
  readonly desk: DaemonDesk;
  readonly window: DaemonWindow;
  /** The session that its task is launched from. */
  readonly parent: string;
  readonly task: string;
}

describe("one daemon for windows on three folders", function () {
  this.timeout(180_000);
  let model: ScriptedModel;
  let desk: DaemonDesk;
  let folders: readonly DeskFolder[];

  before(async () => {
    model = await startScriptedModel();
    desk = await DaemonDesk.open(model);
    folders = await Promise.all([desk, desk.elsewhere(), desk.elsewhere()].map(open));
  });
  after(async () => {
    await desk?.close();
    await model?.stop();
  });

  /** A window on the folder, with a task whose model waits for a gate of the folder's name. */
  async function open(desk: DaemonDesk): Promise<DeskFolder> {
    const window = desk.window();
    const { calls } = window.folder;
    await calls.connect();
    const parent = await calls.ensureSession();
    const { id } = await calls.launch({
      prompt: script([{ text: desk.directory, gate: desk.directory }]),
      description: "Say where you are",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    await model.waitForRequest(({ sessionID }) => sessionID === id, 60_000);
    return { desk, window, parent, task: id };
  }

  it("shows in each window only the tasks of its folder", async () => {
    assert.equal(new Set(folders.map(({ desk }) => desk.daemonPid())).size, 1);
    for (const { window, task } of folders) assert.deepEqual([...window.folder.tasks.keys()], [task]);
    const { folders: known } = (await folders[0]?.desk.status()) ?? assert.fail();
    assert.deepEqual(
      known.map(({ directory, windows, tasks }) => [directory, windows, tasks.map(({ id }) => id)]).sort(),
      folders.map(({ desk, task }) => [desk.directory, 1, [task]]).sort(),
    );
  });

  it("[BKG-4] after it is killed, tasks continue in all of them, and each parent is notified once", async () => {
    const daemon = folders[0]?.desk.daemonPid() ?? assert.fail();
    process.kill(daemon, "SIGKILL");
    await until("the loss", () => folders.every(({ window }) => window.folder.connection() !== "connected"));
    for (const { desk } of folders) model.release(desk.directory);
    await until(
      "another daemon in all windows",
      () => folders.every(({ window }) => window.folder.connection() === "connected"),
      30_000,
    );
    assert.equal(new Set(folders.map(({ desk }) => desk.daemonPid())).size, 1);
    for (const { desk, window, parent, task } of folders) {
      const { calls, tasks } = window.folder;
      assert.equal((await calls.output(task, { block: true })).result, desk.directory);
      await until("the notice", () => tasks.get(task)?.notice.state === "delivered", 30_000);
      assert.equal((await notices(desk, parent)).length, 1);
      assert.deepEqual([...tasks.keys()], [task]);
    }
    assert.ok(model.requests.every(({ aborted }) => !aborted));
  });

  it("leaves the others alone if one is closed and its work is stopped", async () => {
    const [closed, ...others] = folders;
    assert.ok(closed);
    closed.window.close();
    await until("that the window is gone", async () =>
      (await closed.desk.status()).folders.some(({ windows }) => windows === 0),
    );
    const stopping = closed.desk.stop();
    await closed.desk.status();
    // As the plugin in the server does when it finds a new daemon.
    await reopenFolder(closed.desk.stateFolder, closed.desk.directory, { onlyIfUsed: true });
    await stopping;
    const { folders: known } = await closed.desk.status();
    assert.deepEqual(
      known.map(({ directory }) => directory).sort(),
      others.map(({ desk }) => desk.directory).sort(),
    );
    for (const { window, task } of others) {
      assert.equal(window.folder.connection(), "connected");
      assert.equal((await window.folder.calls.output(task, { block: true })).task.status, "completed");
    }
  });

  it("stops the tasks of a folder whose settings name another server, on the one that the others go on using", async () => {
    const leaving = await open(desk.elsewhere());
    const staying = await open(desk.elsewhere());
    const { folder, settings } = leaving.window;
    folder.configure({ ...settings, server: { ...settings.server, ownDatabase: true } });
    const request = model.requests.find(({ sessionID }) => sessionID === leaving.task);
    await until("the end of the task's request", () => request?.aborted, 30_000);
    model.release(staying.desk.directory);
    const { task } = await staying.window.folder.calls.output(staying.task, { block: true });
    assert.equal(task.status, "completed");
  });

  it("does not join a server for a folder that nobody uses, even if it could share a running one", async () => {
    const { folder, close } = desk.elsewhere().window();
    await folder.calls.join();
    assert.equal(folder.connection(), "disconnected");
    await folder.calls.connect();
    assert.equal(folder.connection(), "connected");
    close();
  });
});
