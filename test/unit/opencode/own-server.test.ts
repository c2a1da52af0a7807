import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Text } from "../../../src/engine/sentence.ts";
import { OwnServer } from "../../../src/opencode/own-server.ts";
import { serverFiles } from "../../../src/opencode/server-files.ts";
import type { ServerProcess } from "../../../src/opencode/server-process.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";

describe("A server of the daemon", () => {
  let clock: FakeClock;
  let folder: string;
  let crash: (how: Text) => void;
  let server: OwnServer;

  beforeEach(() => {
    clock = new FakeClock();
    folder = tempDir();
    const exited = new Promise<Text>((resolve) => (crash = resolve));
    const joined = {
      access: { url: "http://127.0.0.1:1", username: "opencode" },
      pid: 1,
      exited,
      isRunning: () => Promise.resolve(true),
      forget: () => Promise.resolve(),
      stop: () => Promise.resolve(),
    } as unknown as ServerProcess;
    server = new OwnServer(
      {
        program: { executable: join(folder, "no-opencode"), env: {} },
        key: "key",
        files: serverFiles(join(folder, "state"), "key"),
        startTimeoutMs: 1_000,
        graceMs: 1_000,
        clock,
        logger: silentLogger,
      },
      joined,
    );
  });

  it("isn't started again once the daemon has left it after a crash", async () => {
    crash("exit code 7");
    await until("the pause", () => clock.pending === 1);
    await server.leave();
    clock.advance(60_000);
    await server.over;
    assert.equal(existsSync(join(folder, "state")), false, "no start was tried");
  });

  it("is started again several times if it can't be started at once after a crash, and then given up", async () => {
    const running = server.attach().running(new AbortController().signal);
    await running;
    crash("exit code 7");
    // The executable is missing each time.
    for (let attempt = 1; attempt <= 6; attempt++) {
      await until("the pause", () => clock.pending === 1);
      assert.equal(server["failure"], undefined, `attempt ${attempt}`);
      clock.advance(12_000);
    }
    await until("the end", () => server["failure"]);
  });

  it("keeps nothing of those who have asked for it", async () => {
    const attachment = server.attach();
    const { signal } = new AbortController();
    for (let call = 0; call < 3; call++) await attachment.running(signal);
    assert.equal(server["changes"].size, 0);
    const abort = new AbortController();
    crash("exit code 7");
    await until("the pause", () => clock.pending === 1);
    const waiting = attachment.running(abort.signal);
    abort.abort();
    await assert.rejects(waiting, { name: "AbortError" });
    assert.equal(server["changes"].size, 0);
    await server.leave();
  });
});
