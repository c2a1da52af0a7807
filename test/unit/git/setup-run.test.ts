import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetupRun } from "../../../src/git/setup-run.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

describe("The output of a setup command", () => {
  const command = (directory: string, line: string) => ({
    directory,
    command: line,
    env: process.env,
    timeout: 60_000,
    signal: new AbortController().signal,
  });

  before(function () {
    if (process.platform === "win32") this.skip();
  });

  it("is kept in memory while the command runs, and then only in its log", async () => {
    const directory = tempDir("setup");
    const log = join(directory, "setup.log");
    const run = new SetupRun(log);
    const end = run.start(command(directory, "echo ready; until [ -e go ]; do sleep 0.05; done; exit 3"));
    const failed = assert.rejects(end, /exit code 3/);
    await until("its output", () => run.output === "ready\n");
    assert.ok(!existsSync(log));
    writeFileSync(join(directory, "go"), "");
    await failed;
    assert.equal(run.output, undefined);
    assert.equal(readFileSync(log, "utf8"), "ready\n");
  });

  it("does not keep a command from ending if a process that left its group holds the output open", async () => {
    const directory = tempDir("setup");
    const run = new SetupRun(join(directory, "setup.log"));
    const leave = `const { spawn } = require("node:child_process");
      const child = spawn("sleep", ["30"], { detached: true, stdio: "inherit" });
      require("node:fs").writeFileSync("pid", String(child.pid));
      child.unref();`;
    await run.start(command(directory, `echo ready; ${JSON.stringify(process.execPath)} -e '${leave}'`));
    assert.match(readFileSync(join(directory, "setup.log"), "utf8"), /ready/);
    process.kill(Number(readFileSync(join(directory, "pid"), "utf8")));
  });

  it("stays in memory if its log cannot be written", async () => {
    const directory = tempDir("setup");
    const run = new SetupRun(join(directory, "missing", "setup.log"));
    await run.start(command(directory, "echo ready"));
    assert.equal(run.output, "ready\n");
  });
});
