import assert from "node:assert/strict";
import { join } from "node:path";
import { reopenFolder } from "../../../src/plugin/reopen-folder.ts";
import type { Answer } from "../../../src/rpc/answering-wire.ts";
import { PROTOCOL_VERSION } from "../../../src/rpc/contract.ts";
import type { DaemonEntry } from "../../../src/rpc/daemon-files.ts";
import { OtherProtocol } from "../../../src/rpc/failures.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { answeringDaemon, welcome } from "./answering-daemon.ts";

describe("The plugin, when it has the daemon open a folder", () => {
  let stateFolder: string;
  let clock: ManualClock;
  /** The methods that the daemon was asked for. */
  let asked: string[];
  let close: () => void;

  beforeEach(() => {
    stateFolder = join(tempDir("rpc"), "state");
    clock = new ManualClock();
    asked = [];
    close = () => undefined;
  });
  afterEach(() => close());

  async function serve(answer: Answer, facts?: Partial<DaemonEntry>): Promise<void> {
    const noting: Answer = (method, params, signal) => {
      asked.push(method);
      return answer(method, params, signal);
    };
    close = await answeringDaemon(stateFolder, noting, facts);
  }

  const reopen = () => reopenFolder(stateFolder, "/work", { onlyIfUsed: true, clock });

  it("gives up on one that greets and then falls silent", async () => {
    await serve(async (method, params) => {
      if (method !== "hello") return new Promise(() => undefined);
      return welcome(params);
    });
    const reopening = assert.rejects(reopen(), {
      name: "ConnectionError",
      message: /The daemon does not answer/,
    });
    await until("the request", () => asked.includes("reopen"));
    await clock.advance(10_000);
    await reopening;
    assert.deepEqual(asked, ["hello", "reopen", "ping"]);
  });

  for (const [what, older, protocol] of [
    ["a newer", "window", PROTOCOL_VERSION + 1],
    ["an older", "daemon", PROTOCOL_VERSION - 1],
  ] as const)
    it(`leaves one with ${what} protocol alone, and says that the server has to be restarted`, async () => {
      await serve(() => Promise.reject(new OtherProtocol(older)), { protocol });
      await assert.rejects(reopen(), {
        name: "ConnectionError",
        message: /Restart this OpenCode server\.$/,
      });
      assert.equal(asked.includes("handOver"), false);
    });

  it("has one with an older protocol replaced by a newer program", async () => {
    await serve(
      async (method) => {
        if (method === "hello") throw new OtherProtocol("daemon");
        close();
      },
      { protocol: PROTOCOL_VERSION - 1, version: "1.1.9" },
    );
    // The program ends at once.
    await assert.rejects(reopen(), /didn't start: it ended/);
    assert.deepEqual(asked, ["hello", "hello", "handOver"]);
  });
});
