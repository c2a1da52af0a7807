import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { DaemonFiles } from "../../src/rpc/daemon-files.ts";
import { EXIT_ALREADY_SERVED, LISTENING } from "../../src/rpc/daemon-program.ts";
import { hermeticEnv, hermeticHome } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";

const ROUNDS = 3;
const AT_ONCE = 10;

describe("Daemons that start at the same time", function () {
  this.timeout(180_000);
  const script = join(tempDir("dist"), "daemon.cjs");
  const env = { ...process.env, ...hermeticEnv(hermeticHome()) };
  const started: ChildProcess[] = [];

  before(async () => {
    const entryPoints = [join(import.meta.dirname, "../../src/daemon/main.ts")];
    const mainFields = ["module", "main"];
    await build({ bundle: true, platform: "node", format: "cjs", mainFields, entryPoints, outfile: script });
  });

  afterEach(() => {
    for (const daemon of started.splice(0)) daemon.kill("SIGKILL");
  });

  it("leave only one, also after the previous one was killed", async () => {
    const stateFolder = tempDir("state");
    for (let round = 1; round <= ROUNDS; round++) {
      const daemons = Array.from({ length: AT_ONCE }, () => start(stateFolder));
      const outcomes = await Promise.all(daemons.map(outcomeOf));
      const serving = daemons.filter((_, index) => outcomes[index] === LISTENING);
      assert.deepEqual(
        [serving.length, outcomes.filter((outcome) => outcome === EXIT_ALREADY_SERVED).length],
        [1, AT_ONCE - 1],
        `round ${round}: ${outcomes.join(", ")}`,
      );
      const [daemon] = serving;
      assert.ok(daemon);
      assert.equal((await new DaemonFiles(stateFolder).read())?.pid, daemon.pid);
      const files = ["daemon-program.json", "daemon.json", "daemon.log", "daemon.sock"];
      assert.deepEqual(readdirSync(stateFolder).sort(), files);
      daemon.kill("SIGKILL");
      await once(daemon, "exit");
    }
  });

  function start(stateFolder: string): ChildProcess {
    const daemon = spawn(process.execPath, [script], { env, stdio: ["pipe", "pipe", "inherit"] });
    started.push(daemon);
    daemon.stdin?.end(JSON.stringify({ stateFolder, version: "0.1.0" }));
    return daemon;
  }
});

/** The exit code, or the message that it listens. */
function outcomeOf(daemon: ChildProcess): Promise<number | string | null> {
  return new Promise((resolve) => {
    daemon.once("exit", resolve);
    daemon.stdout?.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
  });
}
