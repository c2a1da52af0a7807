import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../../src/rpc/answering-wire.ts";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";
import { daemonEntry } from "../rpc/fake-host.ts";
import { answeringDaemon, welcome } from "./answering-daemon.ts";

describe("A server of the extension", () => {
  let stateFolder: string;
  beforeEach(() => (stateFolder = join(tempDir(), "state")));

  /** A process that guards itself. */
  function guarded(...directories: readonly string[]) {
    const program = join(import.meta.dirname, "guarded.ts");
    return spawn(process.execPath, ["--import=tsx", program, stateFolder, ...directories], {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, OPENCODE_SERVER_USERNAME: "opencode", OPENCODE_SERVER_PASSWORD: "its own" },
    });
  }

  /** How such a process exits next to a daemon with this process's ID. */
  async function exitNextTo(processStart: string | undefined): Promise<unknown> {
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ processStart }));
    const [code, signal] = (await once(guarded(tempDir()), "exit")) as [number | null, string | null];
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

  it("has a new daemon open its folders, also if that fails for one of them, which is tried again", async () => {
    const [one, other] = [tempDir(), tempDir()].map((folder) => realpathSync(folder));
    const asked: unknown[] = [];
    const answer: Answer = async (method, params) => {
      if (method === "hello") return welcome(params);
      asked.push((params as { readonly directory: string }).directory);
      if (asked.length === 1) throw new Error("It can't be opened now.");
      return undefined;
    };
    const close = await answeringDaemon(stateFolder, answer, { token: "that of the daemon before" });
    try {
      const server = guarded(one ?? "", other ?? "");
      const exit = once(server, "exit");
      await once(server.stdout, "data");
      const files = new DaemonFiles(stateFolder);
      await writeEntry(files, { ...((await files.read()) ?? assert.fail()), token: "t" });
      assert.deepEqual(await exit, [42, null]);
      assert.deepEqual(asked, [one, other, one, other]);
    } finally {
      close();
    }
  });

  it("doesn't hand its own password to a new daemon, which could send it to another server", async () => {
    let env: Readonly<Record<string, string>> | undefined;
    const answer: Answer = async (method, params) => {
      if (method === "hello") return welcome(params);
      ({ env } = params as { readonly env: Readonly<Record<string, string>> });
      return undefined;
    };
    const close = await answeringDaemon(stateFolder, answer, { token: "that of the daemon before" });
    try {
      const server = guarded(tempDir());
      const exit = once(server, "exit");
      await once(server.stdout, "data");
      const files = new DaemonFiles(stateFolder);
      await writeEntry(files, { ...((await files.read()) ?? assert.fail()), token: "t" });
      assert.deepEqual(await exit, [42, null]);
      assert.equal(env?.["PATH"], process.env["PATH"]);
      assert.deepEqual(
        Object.keys(env ?? {}).filter((name) => name.startsWith("OPENCODE_SERVER_")),
        [],
      );
    } finally {
      close();
    }
  });
});
