import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createUnixServer } from "node:net";
import { join } from "node:path";
import type { ConnectionState } from "../../src/engine/connection.ts";
import { english } from "../../src/engine/sentence.ts";
import { ensurePrivateFolder } from "../../src/state/private-files.ts";
import type { OpenCodeConnection } from "../../src/opencode/connection.ts";
import {
  readServerState,
  serverFiles,
  serverStateFile,
  writeServerState,
} from "../../src/opencode/server-files.ts";
import { encodeMessage } from "../../src/opencode/watchdog/lease-protocol.ts";
import { isAlive, startOf } from "../../src/state/processes.ts";
import { startStranger, takePort, type Stranger } from "../support/stranger.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { Desk, failureOf, fakeServer, isGone } from "./watchdog-support.ts";

describe("Connection to a server of one's own", function () {
  this.timeout(90_000);
  let desk: Desk;
  const strangers: Stranger[] = [];
  afterEach(async () => {
    for (const stranger of strangers.splice(0)) stranger.close();
    await desk.close();
  });

  it("[EXT-1] starts a server for the folder, and another window adopts it", async () => {
    desk = await Desk.open();
    const first = desk.window();
    assert.equal(await first.adopt(), false);
    assert.equal(first.state.kind, "disconnected");
    const states: ConnectionState[] = [];
    first.onDidChangeState((state) => states.push(state));
    await first.connect();
    const connected = states.at(-1);
    assert.ok(connected?.kind === "connected" && connected.own);
    const details = states.map((state) => state.kind === "connecting" && english(state.detail));
    assert.ok(details.includes("Starting OpenCode…"));
    const session = await first.server.createSession({ title: "shared" });

    const second = desk.window();
    assert.equal(await second.adopt(), true);
    assert.deepEqual(second.state, connected);
    assert.equal((await second.server.session(session.id))?.title, "shared");
    const state = desk.state();
    assert.equal((await fetch(`${state?.url}/session`)).status, 401);

    first.dispose();
    await until("no lease but one", () => isAlive(state?.pid ?? 0));
    assert.equal((await second.server.sessions()).length, 1);
  });

  it("keeps the server for the grace period, in which the next window adopts it", async () => {
    desk = await Desk.open({ graceMs: 60_000 });
    const before = desk.window();
    await before.connect();
    const pid = desk.state()?.pid;
    before.dispose();
    const after = desk.window();
    assert.equal(await after.adopt(), true);
    assert.equal(desk.state()?.pid, pid);
    await after.stopServer();
  });

  it("ends the server at once when the last window that uses it is done, and not before", async () => {
    desk = await Desk.open({ graceMs: 60_000 });
    const [first, second] = [desk.window(), desk.window()];
    await first.connect();
    await second.connect();
    const state = desk.state();
    assert.ok(state);
    first.finish();
    assert.equal((await second.server.sessions()).length, 0);
    assert.equal(isGone(state), false);
    second.finish();
    await until("the end", () => isGone(state), 10_000);
  });

  it("leaves no process and no file behind when the grace period ends", async () => {
    desk = await Desk.open({ graceMs: 300 });
    const window = desk.window();
    await window.connect();
    const state = desk.state();
    assert.ok(state && !isGone(state));
    window.dispose();
    await until("the end", () => isGone(state));
    assert.deepEqual(
      desk.files().filter((file) => !file.endsWith(".log")),
      [],
    );
  });

  it("starts one server when two windows start at once", async () => {
    desk = await Desk.open();
    const windows = [desk.window(), desk.window(), desk.window()];
    await Promise.all(windows.map((window) => window.connect()));
    const urls = windows.map(({ state }) => state.kind === "connected" && state.url);
    assert.equal(new Set(urls).size, 1);
    assert.equal(urls[0], desk.state()?.url);
    assert.equal(desk.files().filter((file) => file.endsWith(".lock")).length, 0);
  });

  it("finds the server by whatever path the folder is opened", async () => {
    desk = await Desk.open({ binary: fakeServer });
    await desk.window().connect();
    const link = join(tempDir(), "link");
    symlinkSync(desk.directory, link);
    assert.equal(await desk.window({}, { directory: link }).adopt(), true);
  });

  it("follows a server that was killed and restarted", async () => {
    desk = await Desk.open();
    const window = desk.window();
    await window.connect();
    const { id } = await window.server.createSession({ title: "survivor" });
    const killed = desk.state()?.pid ?? 0;
    let connects = 0;
    window.onDidConnect(() => connects++);
    process.kill(killed, "SIGKILL");
    await until("reconnecting", () => window.state.kind === "reconnecting");
    await until("connected", () => connects > 0 && window.state.kind === "connected", 30_000);
    assert.notEqual(desk.state()?.pid, killed);
    assert.equal((await window.server.session(id))?.title, "survivor");
  });

  it("connects a window that is opened as the server crashes, once the server runs again", async () => {
    desk = await Desk.open();
    await desk.window().connect();
    const killed = await until("the server", () => desk.state());
    process.kill(killed.pid, "SIGKILL");
    const joining = desk.window();
    const connecting = desk.window();
    const [joined] = await Promise.all([joining.adopt(), connecting.connect()]);
    assert.equal(joined, true);
    assert.deepEqual([joining.state.kind, connecting.state.kind], ["connected", "connected"]);
    assert.notEqual(desk.state()?.pid, killed.pid);
  });

  it("sends nothing to a program that takes a crashed server's port, in five crashes", async function () {
    this.timeout(240_000);
    desk = await Desk.open();
    const windows = [desk.window(), desk.window()];
    for (const window of windows) await window.connect();
    const passwords = new Set([desk.state()?.password]);
    for (let round = 1; round <= 5; round++) {
      const { pid, url } = await until("the server", () => desk.state());
      const broken = windows.map((window) => until("the break", () => window.state.kind === "reconnecting"));
      process.kill(pid, "SIGKILL");
      const stranger = await takePort(Number(new URL(url).port));
      strangers.push(stranger);
      await Promise.all(broken);
      // Whatever the window is asked to do meanwhile, and whoever joins.
      const calls = windows.map((window) => window.server.sessions().catch(() => undefined));
      for (const window of windows) void window.connect().catch(() => undefined);
      const newcomer = desk.window();
      void newcomer.adopt();
      await Promise.all(calls);
      const hasMoved = ({ state }: OpenCodeConnection) => state.kind === "connected" && state.url !== url;
      await until(
        "connections to the new server",
        () => stranger.received.length > 0 || [...windows, newcomer].every(hasMoved),
        60_000,
      );
      newcomer.dispose();
      assert.deepEqual(stranger.received, [], `round ${round}`);
      passwords.add(desk.state()?.password);
    }
    assert.equal(passwords.size, 6);
  });

  it("neither calls nor signals what a stale state file names", async () => {
    desk = await Desk.open({ binary: fakeServer });
    const stranger = await startStranger();
    strangers.push(stranger);
    const bystander = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    let ended = false;
    bystander.once("exit", () => (ended = true));
    try {
      await writeServerState(
        serverStateFile(desk.stateFolder, desk.directory),
        stale(stranger, bystander.pid),
      );
      const window = desk.window();
      assert.equal(await window.adopt(), false);
      await window.connect();
      assert.deepEqual(stranger.received, []);
      assert.notEqual(desk.state()?.url, stranger.url);
      assert.equal(ended, false);
    } finally {
      bystander.kill("SIGKILL");
    }
  });

  it("does not believe a watchdog that cannot say which start the state file is about", async () => {
    desk = await Desk.open({ binary: fakeServer });
    const stranger = await startStranger();
    strangers.push(stranger);
    const files = await serverFiles(desk.stateFolder, desk.directory);
    await ensurePrivateFolder(desk.stateFolder);
    await writeServerState(files.state, stale(stranger, process.pid));
    let asked = 0;
    const impostor = createUnixServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () => socket.write(encodeMessage({ type: "ready", run: "another" }), () => asked++));
      socket.write(encodeMessage({ type: "ready", run: "another" }));
    });
    await new Promise<void>((resolve) => impostor.listen(files.socket, resolve));
    try {
      const window = desk.window();
      const adopting = window.adopt();
      await until("the answer", () => asked > 0 || stranger.received.length > 0);
      // What the window made of the answer is done once this has been there and back.
      for (let times = 0; times < 10; times++) await readServerState(files.state);
      await fetch(`${stranger.url}/ours`);
      assert.equal(stranger.received.length, 1);
      assert.match(stranger.received[0] ?? "", /^GET \/ours /);
      await window.disconnect();
      assert.equal(await adopting, false);
    } finally {
      impostor.close();
      rmSync(files.state, { force: true });
    }
  });

  it("stops the server for all windows when one asks to", async () => {
    desk = await Desk.open();
    const [one, other] = [desk.window(), desk.window()];
    await one.connect();
    await other.connect();
    const state = desk.state();
    assert.ok(state);
    await one.stopServer();
    assert.equal(one.state.kind, "disconnected");
    await until("the other window's end", () => other.state.kind === "disconnected");
    await until("the end", () => isGone(state));
    assert.equal(await other.adopt(), false);
  });

  it("starts anew when the watchdog was killed, and ends the server that was left alone", async () => {
    desk = await Desk.open();
    const window = desk.window();
    await window.connect();
    const orphan = desk.state();
    assert.ok(orphan);
    process.kill(orphan.watchdogPid, "SIGKILL");
    await until(
      "a new server",
      () => window.state.kind === "connected" && desk.state()?.pid !== orphan.pid,
      30_000,
    );
    await until("the end of the old one", () => isGone(orphan));
  });

  it("ends a server that was left alone and does not want to end, before it starts another", async function () {
    if (process.platform === "win32") return this.skip();
    const { orphan, follower, connectAnew } = await openStubborn();
    process.kill(orphan.watchdogPid, "SIGKILL");
    await connectAnew();
    assert.ok(await isEnded(orphan.pid));
    assert.ok(await isEnded(follower));
  });

  it("ends what a server started that was killed with its watchdog", async function () {
    if (process.platform !== "linux") return this.skip();
    const { orphan, follower, connectAnew } = await openStubborn();
    for (const pid of [orphan.watchdogPid, orphan.pid]) process.kill(pid, "SIGKILL");
    await connectAnew();
    assert.ok(await isEnded(follower));
  });

  /** A window on a server that takes no hint, and what that server started. */
  async function openStubborn() {
    const file = join(tempDir(), "follower");
    desk = await Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "stubborn", FAKE_FOLLOWER: file } });
    const window = desk.window();
    await window.connect();
    const orphan = desk.state();
    assert.ok(orphan);
    const connectAnew = () =>
      until(
        "a new server",
        () => window.state.kind === "connected" && ![undefined, orphan.pid].includes(desk.state()?.pid),
        30_000,
      );
    return { orphan, follower: Number(readFileSync(file, "utf8")), connectAnew };
  }

  /** A process that nobody reaps has ended too. */
  async function isEnded(pid: number): Promise<boolean> {
    return (await startOf(pid)) === undefined;
  }

  it("gives up waiting when it is cancelled, and the server that was starting ends", async () => {
    desk = await Desk.open({ graceMs: 100 });
    const window = desk.window();
    const abort = new AbortController();
    const connecting = window.connect(abort.signal);
    await until("the watchdog", () => desk.files().some((file) => file.endsWith(".sock")));
    abort.abort();
    await assert.rejects(connecting, { name: "AbortError" });
    assert.equal(window.state.kind, "disconnected");
    await until("the end", () => !desk.files().some((file) => file.endsWith(".sock")));
  });

  it("a folder that goes while its server starts leaves no server behind, whenever that is", async () => {
    desk = await Desk.open({ graceMs: 100 });
    const sockets = (): number => desk.files().filter((file) => file.endsWith(".sock")).length;
    const begun = desk.window();
    const connecting = begun.connect();
    begun.dispose();
    await assert.rejects(connecting, { name: "AbortError" });
    const starting = desk.window();
    const started = starting.connect();
    await until("the watchdog", () => sockets() === 1);
    starting.dispose();
    await assert.rejects(started, { name: "AbortError" });
    await until("the end", () => sockets() === 0);
    assert.equal(desk.state(), undefined);
  });

  it("says that there is no OpenCode, or that the path set is wrong", async () => {
    desk = await Desk.open({ env: { PATH: "/nowhere" } });
    assert.equal((await failureOf(desk.window({ path: "/no/opencode" }).connect())).code, "bad-path");
    writeFileSync(join(desk.directory, "text"), "x");
    assert.equal(
      (await failureOf(desk.window({ path: join(desk.directory, "text") }).connect())).code,
      "bad-path",
    );
  });

  it("tells what the server said when it does not start, and can be tried again", async () => {
    desk = await Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "fails" } });
    const window = desk.window();
    for (let attempt = 0; attempt < 2; attempt++) {
      const failure = await failureOf(window.connect());
      assert.equal(failure.code, "start-failed");
      assert.match(english(failure.message), /exit code 1.*your configuration is bad/);
    }
    await until("the end", () => !desk.files().some((file) => file.endsWith(".sock")));
  });

  it("says what is wrong with the configuration in the real server's words", async () => {
    desk = await Desk.open({ env: { OPENCODE_CONFIG_CONTENT: '{"model": 5}' } });
    const failure = await failureOf(desk.window().connect());
    assert.equal(failure.code, "start-failed");
    assert.match(english(failure.message), /model: Expected string.*OPENCODE_CONFIG_CONTENT/);
  });

  it("does not wait for ever for a server that is not ready", async () => {
    desk = await Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "silent" } });
    const failure = await failureOf(desk.window({ startTimeoutMs: 700 }).connect());
    assert.equal(failure.code, "start-timeout");
    assert.match(english(failure.message), /within 1 s/);
  });

  it("does not use a server that is too old", async () => {
    desk = await Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "old" }, graceMs: 100 });
    const failure = await failureOf(desk.window().connect());
    assert.equal(failure.code, "too-old");
  });

  it("is told when the server crashes again and again", async function () {
    // Six starts, with longer and longer pauses between them.
    this.timeout(150_000);
    desk = await Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "crashes" } });
    const window = desk.window();
    await window.connect().catch(() => {});
    const state = await until(
      "the watchdog's giving up",
      () => window.state.kind === "failed" && window.state.failure.code === "gave-up" && window.state,
      120_000,
    );
    assert.match(english(state.failure.message), /crashed 6 times/);
  });
});

/** What a watchdog that is gone left: its server's place and ID are others' now. */
function stale({ url }: Stranger, pid = 0) {
  return {
    url,
    password: "secret",
    pid,
    run: "gone",
    watchdogPid: 1,
    socket: "",
    version: "1.18.33",
    directory: "/work",
    startedAt: 0,
  };
}
