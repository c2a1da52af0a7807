import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../../src/rpc/answering-wire.ts";
import { writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { startOf } from "../../../src/state/processes.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { daemonEntry } from "../rpc/fake-host.ts";
import { answeringDaemon, welcome } from "./answering-daemon.ts";

describe("A server of the extension", () => {
  let stateFolder: string;
  beforeEach(() => (stateFolder = join(tempDir(), "state")));

  /** A process that guards itself, with a short grace period. */
  const guarded = (...directories: readonly string[]) => guardedFor(100, ...directories);

  function guardedFor(graceMs: number, ...directories: readonly string[]) {
    const program = join(import.meta.dirname, "guarded.ts");
    return spawn(process.execPath, ["--import=tsx", program, stateFolder, String(graceMs), ...directories], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, OPENCODE_SERVER_USERNAME: "opencode", OPENCODE_SERVER_PASSWORD: "its own" },
    });
  }

  type Exit = [code: number | null, signal: string | null];

  /** A process that guards itself next to a daemon with this process's ID. */
  async function guardedNextTo(processStart: string | undefined) {
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ processStart }));
    return guarded(tempDir());
  }

  /** How a process exits that has no reason to stay any longer, unless it is ended before. */
  async function exitOf(server: ReturnType<typeof guarded>): Promise<Exit> {
    const exit = once(server, "exit") as Promise<Exit>;
    server.stdin.end();
    return exit;
  }

  /** Replaces the daemon, as far as a server that has looked for it can tell. */
  async function replaceDaemon(server: ReturnType<typeof guarded>): Promise<void> {
    await once(server.stdout, "data");
    const files = new DaemonFiles(stateFolder);
    await writeEntry(files, { ...((await files.read()) ?? assert.fail()), token: "t" });
  }

  it("stays while its daemon is running, also if it is unknown when that was started", async () => {
    for (const processStart of [await startOf(process.pid), undefined])
      assert.deepEqual(await exitOf(await guardedNextTo(processStart)), [42, null]);
  });

  it("stays while its daemon is running, though what that wrote about itself is deleted", async () => {
    const server = await guardedNextTo(await startOf(process.pid));
    await once(server.stdout, "data");
    rmSync(stateFolder, { recursive: true });
    assert.deepEqual(await exitOf(server), [42, null]);
  });

  it("ends itself if the process of its daemon is another one by now", async function () {
    if (process.platform === "win32") return this.skip();
    const server = await guardedNextTo("another");
    assert.deepEqual(await once(server, "exit"), [null, "SIGTERM"]);
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
      await replaceDaemon(server);
      await until("all requests", () => asked.length === 4);
      assert.deepEqual(await exitOf(server), [42, null]);
      assert.deepEqual(asked, [one, other, one, other]);
    } finally {
      close();
    }
  });

  it("doesn't give up a folder that can't be looked up for a moment", async function () {
    if (process.platform === "win32") this.skip();
    const [real, other] = [tempDir(), tempDir()].map((folder) => realpathSync(folder));
    const link = join(tempDir(), "link");
    symlinkSync(real ?? "", link);
    const asked: unknown[] = [];
    const answer: Answer = async (method, params) => {
      if (method === "hello") return welcome(params);
      return void asked.push((params as { readonly directory: string }).directory);
    };
    const close = await answeringDaemon(stateFolder, answer, { token: "that of the daemon before" });
    try {
      const server = guarded(link, other ?? "");
      await once(server.stdout, "data");
      // Until it leads somewhere again, looking it up fails with ELOOP.
      rmSync(link);
      symlinkSync(link, link);
      const files = new DaemonFiles(stateFolder);
      await writeEntry(files, { ...((await files.read()) ?? assert.fail()), token: "t" });
      await until("a look", () => asked.includes(other));
      rmSync(link);
      symlinkSync(real ?? "", link);
      await until("the request for it", () => asked.includes(real));
      server.kill("SIGKILL");
    } finally {
      close();
    }
  });

  it("has the daemon that somebody else starts open its folders, if it couldn't start one", async () => {
    const directory = realpathSync(tempDir());
    const server = guardedFor(2_000, directory);
    await once(server.stdout, "data");
    const asked: unknown[] = [];
    const close = await answeringDaemon(stateFolder, async (method, params) => {
      if (method === "hello") return welcome(params);
      return void asked.push((params as { readonly directory: string }).directory);
    });
    try {
      await until("the request", () => asked.length > 0);
      assert.deepEqual(asked, [directory]);
    } finally {
      server.kill("SIGKILL");
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
      await replaceDaemon(server);
      await until("the request", () => env);
      assert.deepEqual(await exitOf(server), [42, null]);
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
