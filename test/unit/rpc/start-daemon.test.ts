import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectionError } from "../../../src/engine/connection.ts";
import { systemClock } from "../../../src/rpc/clock.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { LISTENING } from "../../../src/rpc/daemon-program.ts";
import { startDaemon } from "../../../src/rpc/start-daemon.ts";
import { isAlive } from "../../../src/state/processes.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

describe("The start of the daemon", () => {
  let files: DaemonFiles;
  let note: string;

  beforeEach(() => {
    files = new DaemonFiles(join(tempDir("rpc"), "state"));
    note = join(tempDir("rpc"), "note.json");
  });

  function start(text: string, execPath = process.execPath, clock = systemClock): Promise<void> {
    const script = join(tempDir("rpc"), "daemon.cjs");
    const header = `const note = (what) => require("fs").writeFileSync(${JSON.stringify(note)}, JSON.stringify(what));\n`;
    writeFileSync(script, header + text);
    const env = { ...process.env, OF_THE_WINDOW: "yes" };
    return startDaemon(
      { execPath, script, env },
      { stateFolder: files.folder, version: "1.2.0" },
      files,
      clock,
    );
  }

  it("runs the program as Node, apart from the window, with its log, its settings and the window's environment", async () => {
    await start(`
      const { ELECTRON_RUN_AS_NODE, OF_THE_WINDOW } = process.env;
      // Only possible for the leader of a group.
      const isApart = process.platform === "win32" || process.kill(-process.pid, 0);
      const config = JSON.parse(require("fs").readFileSync(0, "utf8"));
      const cwd = process.cwd();
      note({ ELECTRON_RUN_AS_NODE, OF_THE_WINDOW, isApart, config, cwd, options: process.execArgv });
      console.error("A line for the log.");
      console.log("${LISTENING}");`);
    assert.deepEqual(JSON.parse(readFileSync(note, "utf8")), {
      ELECTRON_RUN_AS_NODE: "1",
      OF_THE_WINDOW: "yes",
      isApart: true,
      config: { stateFolder: files.folder, version: "1.2.0" },
      cwd: realpathSync(files.folder),
      options: ["--max-semi-space-size=1"],
    });
    assert.equal(readFileSync(files.log, "utf8"), "A line for the log.\n");
  });

  it("leaves no file open in the window", async function () {
    if (process.platform !== "linux") return this.skip();
    await start(`console.log("${LISTENING}");`);
    const open = readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)];
      } catch {
        return [];
      }
    });
    assert.ok(open.length > 0);
    assert.ok(!open.includes(realpathSync(files.log)));
  });

  it("fails if the program ends before it listens, whatever it has said", async () => {
    await assert.rejects(
      start(`process.stdout.write("${LISTENING}", () => process.exit(3));`),
      ({ name, message, failure }: ConnectionError) => {
        assert.equal(name, "ConnectionError");
        assert.equal(message, "The background process of Async Agents didn't start: it ended (exit code 3).");
        assert.equal(failure.code, "daemon-failed");
        return true;
      },
    );
  });

  it("fails if there is no such executable", async () => {
    await assert.rejects(start("", "/no/such/node"), {
      name: "ConnectionError",
      message: /didn't start: .*ENOENT/,
    });
  });

  it("fails if the folder for its files can't be made", async () => {
    writeFileSync(files.folder, "");
    await assert.rejects(start(""), { name: "ConnectionError", message: /didn't start: .*(EEXIST|ENOTDIR)/ });
  });

  it("fails if the program doesn't listen within 15 seconds, and ends it", async () => {
    const clock = new ManualClock();
    const started = start("note(process.pid); setInterval(() => {}, 1000);", process.execPath, clock);
    started.catch(() => undefined);
    await until("the program", () => existsSync(note) && readFileSync(note, "utf8") !== "");
    const pid = Number(readFileSync(note, "utf8"));
    await clock.advance(14_999);
    assert.equal(isAlive(pid), true);
    await clock.advance(1);
    await assert.rejects(started, { name: "ConnectionError", message: /didn't start: it didn't respond\.$/ });
    await until("its end", () => !isAlive(pid));
  });
});
