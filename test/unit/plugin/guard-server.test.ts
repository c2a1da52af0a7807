import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";
import { daemonEntry } from "../rpc/fake-host.ts";

describe("A server of the extension", () => {
  /** How a process that guards itself exits, next to a daemon with this process's ID. */
  async function exitNextTo(processStart: string | undefined): Promise<unknown> {
    const stateFolder = join(tempDir(), "state");
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ processStart }));
    const program = join(import.meta.dirname, "guarded.ts");
    const child = spawn(process.execPath, ["--import=tsx", program, stateFolder, tempDir()], {
      stdio: "inherit",
      detached: true,
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    return code ?? signal;
  }

  it("stays while its daemon is running, also if it is unknown when that was started", async () => {
    assert.equal(await exitNextTo(await startOf(process.pid)), 42);
    assert.equal(await exitNextTo(undefined), 42);
  });

  it("ends itself if the process of its daemon is another one by now", async function () {
    if (process.platform === "win32") return this.skip();
    assert.equal(await exitNextTo("another"), "SIGTERM");
  });
});
