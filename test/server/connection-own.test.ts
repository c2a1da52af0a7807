import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ConnectionState } from "../../src/engine/connection.ts";
import { english } from "../../src/engine/sentence.ts";
import type { ConnectionOptions, OpenCodeConnection } from "../../src/opencode/connection.ts";
import {
  readServerState,
  serverFiles,
  serverKeys,
  writeServerState,
  type ServerState,
} from "../../src/opencode/server-files.ts";
import { environmentOf, isAlive, startOf } from "../../src/state/processes.ts";
import { basicAuthorization } from "../support/opencode.ts";
import { startStranger, takePort, type Stranger } from "../support/stranger.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { failLooks } from "../unit/opencode/failing-looks.ts";
import { Desk, failureOf, fakeServer, hastyClock } from "./desk.ts";

describe("Connection to a server that the extension starts", function () {
  this.timeout(90_000);
  let desk: Desk;
  const strangers: Stranger[] = [];
  afterEach(async () => {
    for (const stranger of strangers.splice(0)) stranger.close();
    await desk.close();
  });

  it("[EXT-1] starts a server for the folder, and another window joins it", async () => {
    desk = Desk.open();
    const first = desk.connection();
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

    const second = desk.connection();
    assert.equal(await second.adopt(), true);
    assert.deepEqual(second.state, connected);
    assert.equal((await second.server.session(session.id))?.title, "shared");
    const state = desk.state();
    assert.equal((await fetch(`${state?.url}/session`)).status, 401);

    first.dispose();
    await until("no user but one", () => isAlive(state?.pid ?? 0));
    assert.equal((await second.server.sessions()).length, 1);
  });

  it("keeps the server for the grace period, in which the next window joins it", async () => {
    desk = Desk.open({ binary: fakeServer, graceMs: 60_000 });
    const before = desk.connection();
    await before.connect();
    const pid = desk.state()?.pid;
    before.dispose();
    const after = desk.connection();
    assert.equal(await after.adopt(), true);
    assert.equal(desk.state()?.pid, pid);
    await after.stopServer();
  });

  it("stops the server at once when the last window that uses it finishes, and not before", async () => {
    desk = Desk.open({ binary: fakeServer, graceMs: 60_000 });
    const [first, second] = [desk.connection(), desk.connection()];
    await first.connect();
    await second.connect();
    const state = desk.state();
    assert.ok(state);
    first.finish();
    assert.equal((await second.server.sessions()).length, 0);
    assert.equal(!isAlive(state.pid), false);
    second.finish();
    await until("the end", () => !isAlive(state.pid), 10_000);
  });

  it("leaves no process and only logs behind when the grace period ends", async () => {
    desk = Desk.open({ graceMs: 300 });
    const window = desk.connection();
    await window.connect();
    const state = desk.state();
    assert.ok(state && isAlive(state.pid));
    window.dispose();
    await until("the end", () => !isAlive(state.pid));
    await until("no file but logs", () => desk.files().every((file) => file.endsWith(".log")));
  });

  it("starts one server when several windows start at once", async () => {
    desk = Desk.open();
    const windows = [desk.connection(), desk.connection(), desk.connection()];
    await Promise.all(windows.map((window) => window.connect()));
    const urls = windows.map(({ state }) => state.kind === "connected" && state.url);
    assert.equal(new Set(urls).size, 1);
    assert.equal(urls[0], desk.state()?.url);
    assert.equal(desk.files().filter((file) => file.endsWith(".lock")).length, 0);
  });

  it("finds the server when the folder is opened through a link", async () => {
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const link = join(tempDir(), "link");
    symlinkSync(desk.directory, link);
    assert.equal(await desk.connection({}, { directory: link }).adopt(), true);
  });

  it("follows a server that was killed and restarted, and connects a window that is opened meanwhile", async () => {
    desk = Desk.open();
    const window = desk.connection();
    await window.connect();
    const { id } = await window.server.createSession({ title: "survivor" });
    const killed = desk.state()?.pid ?? 0;
    let connects = 0;
    window.onDidConnect(() => connects++);
    const broken = until("reconnecting", () => window.state.kind === "reconnecting");
    process.kill(killed, "SIGKILL");
    const joining = desk.connection();
    const connecting = desk.connection();
    const [joined] = await Promise.all([joining.adopt(), connecting.connect(), broken]);
    assert.equal(joined, true);
    assert.deepEqual([joining.state.kind, connecting.state.kind], ["connected", "connected"]);
    await until("connected", () => connects > 0 && window.state.kind === "connected", 30_000);
    assert.notEqual(desk.state()?.pid, killed);
    assert.equal((await window.server.session(id))?.title, "survivor");
  });

  it("sends nothing to a program that takes the port of a crashed server, in three crashes", async () => {
    desk = Desk.open();
    const windows = [desk.connection(), desk.connection()];
    for (const window of windows) await window.connect();
    const passwords = new Set([desk.state()?.password]);
    for (let round = 1; round <= 3; round++) {
      const { pid, url } = await until("the server", () => desk.state());
      const broken = windows.map((window) => until("the break", () => window.state.kind === "reconnecting"));
      process.kill(pid, "SIGKILL");
      const stranger = await takePort(Number(new URL(url).port));
      strangers.push(stranger);
      await Promise.all(broken);
      // Meanwhile there are calls, connects and a new window.
      const calls = windows.map((window) => window.server.sessions().catch(() => undefined));
      for (const window of windows) void window.connect().catch(() => undefined);
      const newcomer = desk.connection();
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
    assert.equal(passwords.size, 4);
  });

  it("sends nothing to a program on the port of a server whose end it can't have noticed yet", async function () {
    if (process.platform !== "linux") return this.skip();
    desk = Desk.open();
    const window = desk.connection();
    await window.connect();
    const { pid, url } = desk.state() ?? assert.fail("no server");
    process.kill(pid, "SIGKILL");
    // Blocks everything else, so that neither the exit nor the broken connections are known afterwards.
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
    const stranger = await takePort(Number(new URL(url).port));
    strangers.push(stranger);
    // More than there are idle connections.
    const calls = Array.from({ length: 10 }, () => window.server.sessions());
    const outcomes = await Promise.allSettled(calls);
    assert.deepEqual(stranger.received, []);
    assert.ok(outcomes.every(({ status }) => status === "rejected"));
  });

  for (const [what, processStart] of [
    ["names", "another"],
    ["names, if it doesn't tell when that started", undefined],
  ] as const)
    it(`neither calls nor signals what a stale state file ${what}`, () => startInPlaceOf(processStart));

  async function startInPlaceOf(processStart: string | undefined): Promise<void> {
    desk = Desk.open({ binary: fakeServer });
    const stranger = await startStranger();
    strangers.push(stranger);
    const bystander = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    let ended = false;
    bystander.once("exit", () => (ended = true));
    try {
      await writeServerState(desk.statePath(), { ...stale(stranger, bystander.pid), processStart });
      const window = desk.connection();
      assert.equal(await window.adopt(), false);
      await window.connect();
      assert.deepEqual(stranger.received, []);
      assert.notEqual(desk.state()?.url, stranger.url);
      assert.equal(ended, false);
    } finally {
      bystander.kill("SIGKILL");
    }
  }

  it("stops the server for all windows when one requests it", async () => {
    desk = Desk.open({ binary: fakeServer });
    const [one, other] = [desk.connection(), desk.connection()];
    await one.connect();
    await other.connect();
    const state = desk.state();
    assert.ok(state);
    await one.stopServer();
    assert.equal(one.state.kind, "disconnected");
    await until("the other window's end", () => other.state.kind === "disconnected");
    await until("the end", () => !isAlive(state.pid));
    assert.equal(await other.adopt(), false);
  });

  it("is lost for a window that is still connecting when another one stops it", async () => {
    desk = Desk.open({ binary: fakeServer });
    const { servers } = desk;
    const start: typeof servers.start = async (...given) => {
      const attachment = await servers.start(...given);
      const other = desk.connection();
      await other.adopt();
      await other.stopServer();
      return attachment;
    };
    const window = desk.connection(
      {},
      {
        ownServers: {
          start,
          adopt: (...given) => servers.adopt(...given),
          search: (search) => servers.search(search),
          stop: (wanted) => servers.stop(wanted),
        },
      },
    );
    const states: string[] = [];
    window.onDidChangeState(({ kind }) => states.push(kind));
    const { code, message } = await failureOf(window.connect());
    assert.equal(code, "unreachable", english(message));
    assert.deepEqual([states.includes("failed"), window.state.kind], [false, "disconnected"]);
  });

  it("[BKG-4] is joined by the next daemon, which restarts the server after a crash", async function () {
    if (process.platform === "win32") return this.skip();
    desk = Desk.open();
    const before = desk.connection();
    await before.connect();
    const state = desk.state();
    const { id } = await before.server.createSession({ title: "goes on" });
    await desk.nextDaemon();
    const after = desk.connection();
    assert.equal(await after.adopt(), true);
    assert.equal((await after.server.session(id))?.title, "goes on");
    assert.deepEqual(desk.state(), state);
    // The daemon monitors it like one that it started itself.
    process.kill(state?.pid ?? 0, "SIGKILL");
    await until(
      "the server's restart",
      () => after.state.kind === "connected" && desk.state()?.pid !== state?.pid,
      60_000,
    );
  });

  it("[BKG-4] that refuses a folder goes on for the others of the earlier daemon, which may come back later", async function () {
    if (process.platform === "win32") return this.skip();
    desk = Desk.open({ graceMs: 60_000 });
    const elsewhere = { directory: tempDir("other") };
    const before = desk.connection({}, elsewhere);
    await before.connect();
    const { pid } = desk.state() ?? assert.fail("no server");
    const { id } = await before.server.createSession({ title: "goes on" });
    await desk.nextDaemon();
    writeFileSync(join(desk.directory, "opencode.json"), '{ "model": 5 }');
    const refused = desk.connection();
    assert.equal((await failureOf(refused.connect())).code, "folder-refused");
    const after = desk.connection({}, elsewhere);
    await after.connect();
    assert.equal((await after.server.session(id))?.title, "goes on");
    assert.equal(after.serverPid, pid);
  });

  it("[BKG-4] is waited for by the next daemon while it is too busy to respond", async function () {
    if (process.platform === "win32") return this.skip();
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const state = desk.state() ?? assert.fail("no server");
    const { pid } = state;
    await desk.nextDaemon();
    const after = desk.connection();
    process.kill(pid, "SIGSTOP");
    const connecting = after.connect();
    let cuts = 0;
    after.onDidChangeState((state) => {
      const isCut = state.kind === "connecting" && !english(state.detail).endsWith("…");
      if (isCut && ++cuts === 4) process.kill(pid, "SIGCONT");
    });
    await connecting;
    assert.deepEqual(desk.state(), state);
  });

  it("[BKG-4] is joined by the next daemon even if its executable is gone, and can be stopped", async function () {
    if (process.platform === "win32") return this.skip();
    const { after, state } = await withoutExecutable();
    await desk.servers.sweep();
    assert.deepEqual(desk.state(), state);
    assert.equal((await after.server.sessions()).length, 0);
    await after.stopServer();
    assert.ok(await isEnded(state.pid));
    assert.equal((await failureOf(after.connect())).code, "bad-path");
    await after.stopServer();
  });

  it("isn't restarted after a crash if its executable is gone, which is said", async function () {
    if (process.platform === "win32") return this.skip();
    const { after, state } = await withoutExecutable();
    process.kill(state.pid, "SIGKILL");
    const { failure } = await until("the failure", () => after.state.kind === "failed" && after.state);
    assert.equal(failure.code, "bad-path");
  });

  /** A folder that the next daemon has connected to its server, whose executable was removed in the meantime. */
  async function withoutExecutable(): Promise<{ after: OpenCodeConnection; state: { pid: number } }> {
    const binary = copyOf(fakeServer);
    desk = Desk.open({ binary });
    const before = desk.connection();
    await before.connect();
    const { serverKey } = before;
    const state = desk.state() ?? assert.fail("no server");
    await desk.nextDaemon();
    rmSync(binary);
    const after = desk.connection({}, { usedKey: () => serverKey });
    await after.connect();
    return { after, state };
  }

  it("is joined by the next daemon even if it is unknown when its process started, and is ended with it", async function () {
    if (process.platform === "win32") return this.skip();
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const state = (await readServerState(desk.statePath())) ?? assert.fail("no server");
    await desk.nextDaemon();
    await writeServerState(desk.statePath(), { ...state, processStart: undefined });
    const after = desk.connection();
    assert.equal(await after.adopt(), true);
    assert.equal(desk.state()?.pid, state.pid);
    assert.equal(await isEnded(state.pid), false);
    await after.stopServer();
    assert.ok(await isEnded(state.pid));
  });

  it("outlives looks at its process that fail, both those of a daemon that joined it and of one that joins", async function () {
    if (process.platform === "win32") return this.skip();
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const state = desk.state() ?? assert.fail("no server");
    await desk.nextDaemon();
    const joined = desk.connection();
    assert.equal(await joined.adopt(), true);
    let looks = failLooks(state.pid);
    try {
      await until("a look in vain", () => looks.failed > 0 || !isAlive(state.pid));
      assert.equal(joined.state.kind, "connected");
      await desk.nextDaemon();
      const failure = await failureOf(desk.connection().connect());
      assert.match(english(failure.message), /too many/);
    } finally {
      looks.stop();
    }
    assert.equal(await desk.connection().adopt(), true);
    assert.deepEqual(desk.state(), state);
    looks = failLooks(state.pid);
    try {
      // Nobody has to wait until it ends.
      assert.equal(await desk.connection().adopt(), true);
    } finally {
      looks.stop();
    }
  });

  it("is ended by a daemon that leaves while it starts", async () => {
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "silent" } });
    const connecting = failureOf(desk.connection().connect());
    const { pid } = await until("the server", () => desk.state());
    await desk.servers.leave();
    assert.ok(await isEnded(pid));
    assert.equal(desk.state(), undefined);
    assert.equal((await connecting).code, "unreachable");
  });

  it("is not stopped by the next daemon while a folder is still searching for it", async () => {
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const state = desk.state();
    await desk.nextDaemon();
    let swept: Promise<void> | undefined;
    const serverEnv: ConnectionOptions["serverEnv"] = async (env) => {
      swept = desk.servers.sweep();
      // As long as the sweep would take to find the server.
      await readServerState(desk.statePath());
      await startOf(state?.pid ?? 0);
      return env;
    };
    assert.equal(await desk.connection({}, { serverEnv }).adopt(), true);
    await swept;
    assert.deepEqual(desk.state(), state);
    assert.ok(isAlive(state?.pid ?? 0));
  });

  it("is stopped by the next daemon if no folder needs it", async function () {
    if (process.platform === "win32") return this.skip();
    const { left, follower } = await leave("stubborn");
    await desk.servers.sweep();
    assert.ok(await isEnded(left.pid));
    await until("the end of its follower", () => isEnded(follower));
    assert.equal(desk.state(), undefined);
  });

  it("is stopped by the next daemon even if the file of another server can't be read", async function () {
    if (process.platform === "win32") return this.skip();
    const { left, follower } = await leave("leads");
    mkdirSync(join(dirname(desk.statePath()), "server-0.json"));
    await desk.servers.sweep();
    assert.ok(await isEnded(left.pid));
    await until("the end of its follower", () => isEnded(follower));
  });

  it("is stopped by the next daemon if it never answered the previous one", async function () {
    if (process.platform === "win32") return this.skip();
    const { left, follower } = await leave("leads");
    await writeServerState(desk.statePath(), { ...left, version: undefined });
    const connection = desk.connection();
    assert.equal(await connection.adopt(), false);
    assert.ok(await isEnded(left.pid));
    await until("the end of its follower", () => isEnded(follower));
  });

  it("leaves its log for a month", async () => {
    desk = Desk.open({ binary: fakeServer });
    await desk.connection().connect();
    const month = 30 * 24 * 3_600;
    const ended = (key: number, seconds: number): string => {
      const path = join(desk.stateFolder, `server-${key}.log`);
      writeFileSync(path, "What it said.");
      utimesSync(path, Date.now() / 1_000 - seconds, Date.now() / 1_000 - seconds);
      return basename(path);
    };
    const [recent, old] = [ended(1, month - 600), ended(2, month + 600)];
    const { log } = serverFiles(desk.stateFolder, serverKeys(desk.files())[0] ?? "");
    utimesSync(log, 0, 0);
    await desk.servers.sweep();
    const logs = desk.files().filter((name) => name.endsWith(".log"));
    assert.ok(!logs.includes(old));
    assert.deepEqual(logs.toSorted(), [recent, basename(log)].toSorted());
  });

  it("stops what the server had started, after the server was killed after its daemon", async function () {
    if (process.platform !== "linux") return this.skip();
    const { left, follower } = await leave("leads");
    process.kill(left.pid, "SIGKILL");
    await until("its end", () => isEnded(left.pid));
    await desk.connection().connect();
    await until("the end of its follower", () => isEnded(follower));
  });

  /** A server and a process that it started, both left behind by their daemon. A stubborn one ignores requests to end. */
  async function leave(how: "leads" | "stubborn"): Promise<{ left: ServerState; follower: number }> {
    const file = join(tempDir(), "follower");
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: how, FAKE_FOLLOWER: file } });
    await desk.connection().connect();
    const left = await readServerState(desk.statePath());
    assert.ok(left);
    await desk.nextDaemon();
    return { left, follower: Number(readFileSync(file, "utf8")) };
  }

  /** Also true for a zombie process. */
  async function isEnded(pid: number): Promise<boolean> {
    return (await startOf(pid)) === undefined;
  }

  it("stops waiting when it is cancelled, and the starting server ends", async () => {
    desk = Desk.open();
    const connection = desk.connection();
    const abort = new AbortController();
    const connecting = connection.connect(abort.signal);
    const { pid } = await until("the server", () => desk.state());
    abort.abort();
    await assert.rejects(connecting, { name: "AbortError" });
    assert.equal(connection.state.kind, "disconnected");
    await until("the end", () => isEnded(pid));
    await until("the end of what tells of it", () => desk.state() === undefined);
  });

  it("leaves no server behind if its folder is closed while the server starts", async () => {
    desk = Desk.open();
    const begun = desk.connection();
    const connecting = begun.connect();
    begun.dispose();
    await assert.rejects(connecting, { name: "AbortError" });
    const starting = desk.connection();
    const started = starting.connect();
    const { pid } = await until("the server", () => desk.state());
    starting.dispose();
    await assert.rejects(started, { name: "AbortError" });
    await until("the end", () => isEnded(pid));
    await until("the end of what tells of it", () => desk.state() === undefined);
  });

  describe("of several folders", () => {
    it("[BKG-9] is one if they agree on program and environment, and each sees its own sessions", async () => {
      desk = Desk.open();
      const env = { ...desk.env, VSCODE_PID: "1", TERM_PROGRAM: "another", PWD: "/elsewhere" };
      const [one, other] = [desk.connection(), desk.connection({}, { directory: tempDir("other"), env })];
      await Promise.all([one.connect(), other.connect()]);
      assert.equal(serverKeys(desk.files()).length, 1);
      assert.deepEqual(one.state, other.state);
      const { id } = await one.server.createSession({ title: "of one" });
      assert.deepEqual(
        (await one.server.sessions()).map((session) => session.id),
        [id],
      );
      assert.deepEqual(await other.server.sessions(), []);
    });

    it("[BKG-9] are several if they don't", async () => {
      desk = Desk.open({ binary: fakeServer });
      const elsewhere = { directory: tempDir("other") };
      await desk.connection().connect();
      await desk.connection({}, { ...elsewhere, env: { ...desk.env, MEANS: "something" } }).connect();
      await desk.connection({ path: copyOf(fakeServer) }, elsewhere).connect();
      assert.equal(serverKeys(desk.files()).length, 3);
    });

    it("[BKG-9] keeps running for the others when one folder finishes, and unloads only that one", async () => {
      desk = Desk.open();
      const [one, other] = [desk.connection(), desk.connection({}, { directory: tempDir("other") })];
      await Promise.all([one.connect(), other.connect()]);
      const { url, password } = desk.state() ?? assert.fail("no server");
      const events = new AbortController();
      const { body } = await fetch(`${url}/global/event`, {
        headers: { authorization: basicAuthorization(password) },
        signal: events.signal,
      });
      let heard = "";
      const listening = (async () => {
        for await (const chunk of body ?? []) heard += new TextDecoder().decode(chunk);
      })().catch(() => undefined);
      const unloaded = () =>
        [...heard.matchAll(/"server\.instance\.disposed".*?"directory":"(.*?)"/g)].map(
          ([, directory]) => directory,
        );
      await until("the stream", () => heard.includes("server.connected"));
      // The server sends to a stream only a moment after it has begun.
      await other.server.sessions();
      one.finish();
      await until("the end of the folder", () => unloaded().length > 0);
      events.abort();
      await listening;
      assert.deepEqual(unloaded(), [realpathSync(desk.directory)]);
      assert.equal((await other.server.sessions()).length, 0);
      assert.equal(other.state.kind, "connected");
    });
  });

  for (const order of ["changed", "same"] as const)
    it(`[BKG-4] is restarted after a crash only for the folders that agree with it; that with the ${order} program came back first`, async function () {
      if (process.platform === "win32") return this.skip();
      desk = Desk.open({ binary: fakeServer });
      const before = desk.connection();
      await before.connect();
      const state = desk.state() ?? assert.fail("no server");
      const { serverKey: usedKey } = before;
      await desk.nextDaemon();
      const env = { ...desk.env, MEANS: "something" };
      const changed = desk.connection({}, { env, usedKey: () => usedKey });
      const same = desk.connection({}, { directory: tempDir("other"), usedKey: () => usedKey });
      for (const one of order === "same" ? [same, changed] : [changed, same]) await one.connect();
      assert.deepEqual([changed.serverPid, same.serverPid], [state.pid, state.pid]);
      let connects = 0;
      for (const one of [changed, same]) one.onDidConnect(() => connects++);
      process.kill(state.pid, "SIGKILL");
      await until("connections again", () => connects === 2, 30_000);
      assert.equal(same.serverKey, usedKey);
      assert.notEqual(changed.serverKey, usedKey);
      if (process.platform !== "linux") return;
      const hasChange = async ({ serverPid = 0 }: OpenCodeConnection): Promise<boolean | undefined> =>
        (await environmentOf(serverPid))?.includes("MEANS=");
      assert.deepEqual([await hasChange(changed), await hasChange(same)], [true, false]);
    });

  it("says that the configured path is wrong", async () => {
    desk = Desk.open({ env: { PATH: "/nowhere" } });
    assert.equal((await failureOf(desk.connection({ path: "/no/opencode" }).connect())).code, "bad-path");
    writeFileSync(join(desk.directory, "text"), "x");
    assert.equal(
      (await failureOf(desk.connection({ path: join(desk.directory, "text") }).connect())).code,
      "bad-path",
    );
  });

  it("reports what the server printed when it does not start, and can be tried again", async () => {
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "fails" } });
    const window = desk.connection();
    for (let attempt = 0; attempt < 2; attempt++) {
      const failure = await failureOf(window.connect());
      assert.equal(failure.code, "start-failed");
      assert.match(english(failure.message), /exit code 1.*your configuration is bad/);
    }
    await until("the end", () => !desk.files().some((file) => file.endsWith(".sock")));
  });

  it("reports a configuration error in the real server's words", async () => {
    desk = Desk.open({ env: { OPENCODE_CONFIG_CONTENT: '{"model": 5}' } });
    const failure = await failureOf(desk.connection().connect());
    assert.equal(failure.code, "folder-refused");
    assert.match(english(failure.message), /model: Expected string.*OPENCODE_CONFIG_CONTENT/);
  });

  it("works in a folder whose configuration was wrong once it is corrected, though OpenCode keeps what it has read", async () => {
    desk = Desk.open({ graceMs: 60_000 });
    const file = join(desk.directory, "opencode.json");
    writeFileSync(file, '{ "model": 5 }');
    const window = desk.connection();
    const failure = await failureOf(window.connect());
    assert.equal(failure.code, "folder-refused");
    writeFileSync(file, "{}");
    await window.connect();
    assert.deepEqual(await window.server.sessions(), []);
  });

  it("goes on for the other folders while it refuses one, which is told to have it restarted", async () => {
    desk = Desk.open();
    const other = desk.connection({}, { directory: tempDir("other") });
    await other.connect();
    const { pid } = desk.state() ?? assert.fail("no server");
    writeFileSync(join(desk.directory, "opencode.json"), '{ "model": 5 }');
    const failure = await failureOf(desk.connection().connect());
    assert.match(english(failure.remedy), /connect again.* restart the server\.$/);
    assert.deepEqual(await other.server.sessions(), []);
    assert.equal(other.serverPid, pid);
  });

  it("gives up on a server that does not become ready", async () => {
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "silent" } });
    const failure = await failureOf(desk.connection({ startTimeoutMs: 700 }).connect());
    assert.equal(failure.code, "start-timeout");
    assert.match(english(failure.message), /within 1 s/);
  });

  it("refuses a server that is too old, and ends it", async () => {
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "old" }, graceMs: 60_000 });
    const failure = await failureOf(desk.connection().connect());
    assert.equal(failure.code, "too-old");
    // It would still be too old after an update.
    await until("its end", () => serverKeys(desk.files()).length === 0);
  });

  it("gives up when the server crashes again and again", async () => {
    // Six starts, with longer and longer pauses between them.
    desk = Desk.open({ binary: fakeServer, env: { FAKE_SERVER: "crashes" }, clock: hastyClock });
    const window = desk.connection();
    await window.connect().catch(() => {});
    const state = await until(
      "the giving up",
      () => window.state.kind === "failed" && window.state.failure.code === "gave-up" && window.state,
      60_000,
    );
    assert.match(english(state.failure.message), /crashed 6 times/);
  });
});

/** The state file of a dead daemon: its server's address and process ID now belong to others. */
function stale({ url }: Stranger, pid = 0): ServerState {
  return { url, password: "secret", pid, processStart: "another", version: "1.18.33" };
}

function copyOf(program: string): string {
  const copy = join(tempDir(), basename(program));
  copyFileSync(program, copy);
  return copy;
}
