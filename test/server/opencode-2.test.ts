import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { english } from "../../src/engine/sentence.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { openCodeBinary } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { Desk, failureOf, fakeOpenCode2, silentLogger } from "./desk.ts";

/** A folder for PATH in which this program is `opencode`. */
function installed(program: string): string {
  const folder = tempDir("bin");
  symlinkSync(program, join(folder, "opencode"));
  return folder;
}

/** The path without a folder in which there is an OpenCode. */
function pathOf(...folders: readonly string[]): string {
  return [...folders, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
}

describe("Connection where OpenCode 2 is installed", function () {
  this.timeout(60_000);
  let desk: Desk | undefined;
  let starts: string;
  const log: string[] = [];
  const logger = { ...silentLogger, info: (line: string) => void log.push(line) };

  beforeEach(() => {
    starts = join(tempDir(), "starts");
    log.length = 0;
  });
  afterEach(() => desk?.close());

  function open(env: Record<string, string>): Desk {
    return (desk = Desk.open({ binary: fakeOpenCode2, env: { FAKE_STARTS: starts, ...env } }));
  }

  it("[OC2-1] says which version is installed and which one it needs, and does not start it", async () => {
    const window = open({ PATH: pathOf(installed(fakeOpenCode2)) }).connection({ path: undefined });
    assert.equal(await window.adopt(), false);
    assert.equal(window.state.kind, "disconnected");
    const failure = await failureOf(window.connect());
    assert.equal(failure.code, "too-new");
    assert.match(
      english(failure.message),
      /^OpenCode 2\.3\.2 is installed, but .* OpenCode 1 \(1\.18\.15 or later\)/,
    );
    assert.equal(existsSync(starts), false);
  });

  it("[OC2-2] with version 2 first on PATH, version 1 is used without a question, and the log says so", async () => {
    const [second, first] = [installed(fakeOpenCode2), installed(openCodeBinary())];
    const window = open({ PATH: pathOf(second, first) }).connection({ path: undefined }, { logger });
    await window.connect();
    assert.ok(window.state.kind === "connected" && window.state.own);
    const { id } = await window.server.createSession({ title: "with version 1" });
    assert.equal((await window.server.session(id))?.title, "with version 1");
    const [choice] = log.filter((line) => line.includes("newest supported"));
    assert.match(choice ?? "", /^Using OpenCode 1\.18\.\d+ \(.*not using OpenCode 2\.3\.2 \(/);
    assert.equal(existsSync(starts), false);
  });

  it("[OC2-1] once version 1 is installed, the next attempt uses it", async () => {
    const [second, first] = [installed(fakeOpenCode2), tempDir("bin")];
    const window = open({ PATH: pathOf(second, first) }).connection({ path: undefined });
    assert.equal((await failureOf(window.connect())).code, "too-new");
    symlinkSync(openCodeBinary(), join(first, "opencode"));
    await window.connect();
    assert.equal(window.state.kind, "connected");
  });

  it("[OC2-1] a running server is joined at once after an update to version 2, which isn't started after its end", async () => {
    const binary = join(installed(openCodeBinary()), "opencode");
    desk = Desk.open({ binary, env: { FAKE_STARTS: starts } });
    await desk.connection().connect();
    rmSync(binary);
    symlinkSync(fakeOpenCode2, binary);
    await desk.nextDaemon();
    const window = desk.connection();
    await window.connect();
    assert.ok(window.state.kind === "connected" && window.state.own);
    process.kill(desk.state()?.pid ?? assert.fail(), "SIGKILL");
    const { failure } = await until("the refusal", () => window.state.kind === "failed" && window.state);
    assert.equal(failure.code, "too-new");
    assert.equal(existsSync(starts), false);
  });

  it("recognizes version 2 once it runs, if it did not say its version", async () => {
    const failure = await failureOf(open({ FAKE_VERSION: "custom build" }).connection().connect());
    assert.equal(failure.code, "too-new");
    assert.match(english(failure.message), /^OpenCode 2\.3\.2 is installed/);
    assert.equal(existsSync(starts), true);
  });

  it("[OC2-4] a database of its own keeps tasks away from version 2, and those so far come back with the shared one", async () => {
    const model = await startScriptedModel();
    const { place } = await DaemonDesk.open(model);
    const path = pathOf(installed(fakeOpenCode2), installed(openCodeBinary()));
    const machine = new DaemonDesk({ ...place, env: { ...place.env, PATH: path } });
    try {
      const shared = { server: { startTimeoutMs: 60_000 } };
      const window = machine.window({}, shared);
      const { calls } = window.folder;
      const use = async (ownDatabase: boolean): Promise<string> => {
        await calls.disconnect();
        window.folder.configure({ ...window.settings, server: { ...shared.server, ownDatabase } });
        await calls.connect();
        await until("the offer", () => window.folder.sharesDatabase() === !ownDatabase);
        return calls.ensureSession();
      };
      const first = await use(false);
      assert.notEqual(await use(true), first);
      assert.ok(existsSync(join(machine.stateFolder, "opencode.db")));
      assert.equal(await use(false), first);
    } finally {
      await machine.close();
      await model.stop();
    }
  });

  describe("as a server at the configured address", () => {
    let url: string;
    let stop: () => void;
    beforeEach(async () => {
      const program = spawn(process.execPath, [fakeOpenCode2, "serve", "--port", "0"], {
        env: { OPENCODE_PASSWORD: "secret" },
        stdio: ["ignore", "pipe", "inherit"],
      });
      stop = () => void program.kill();
      const [output] = (await once(program.stdout, "data")) as [Buffer];
      url = /http:\S+/.exec(output.toString())?.[0] ?? assert.fail();
    });
    afterEach(() => stop());

    it("[OC2-3] names its version with the right password", async () => {
      const password = () => Promise.resolve("secret");
      const failure = await failureOf(open({}).connection({ url }, { password }).connect());
      assert.equal(failure.code, "server-too-new");
      assert.match(english(failure.message), /is OpenCode 2\.3\.2, but Async Agents works with OpenCode 1/);
    });

    it("[OC2-3] asks for the password without claiming to know what the server is", async () => {
      const failure = await failureOf(open({}).connection({ url }).connect());
      assert.equal(failure.code, "wrong-password");
      assert.match(english(failure.message), /^The server at \S+ rejected the password/);
    });
  });
});
