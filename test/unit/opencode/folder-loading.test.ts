import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConnectionError } from "../../../src/engine/connection.ts";
import { createClient, type ServerFolder } from "../../../src/opencode/client.ts";
import { loadFolder } from "../../../src/opencode/folder-loading.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";

/** A server that answers for its folder on demand. */
class FakeServer {
  readonly questions: { readonly url: string; readonly response: ServerResponse }[] = [];
  private constructor(private readonly server: Server) {
    server.on("request", ({ url = "" }, response) => this.questions.push({ url, response }));
  }
  static async start() {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FakeServer(server);
  }
  get url() {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

describe("Loading a folder", () => {
  let server: FakeServer;
  let clock: FakeClock;
  let abort: AbortController;
  let told: number;

  beforeEach(async () => {
    server = await FakeServer.start();
    clock = new FakeClock();
    abort = new AbortController();
    told = 0;
  });
  afterEach(() => server.stop());

  function loaded(): Promise<ServerFolder> {
    const client = createClient({ url: server.url, username: "opencode" }, "/work");
    return loadFolder(client, {
      clock,
      withinMs: 90_000,
      signal: abort.signal,
      onSlow: () => told++,
    });
  }
  const asked = (times: number) => until(`question ${times}`, () => server.questions.length === times);
  const answer = (index: number, status: number, body: unknown) =>
    server.questions[index]?.response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify(body));

  it("sends one request, whose answer has the server's spelling of the folder", async () => {
    const loading = loaded();
    await asked(1);
    assert.equal(server.questions[0]?.url, "/path?directory=%2Fwork");
    answer(0, 200, { directory: "/Work", worktree: "/" });
    assert.deepEqual(await loading, { directory: "/Work", isInRepository: false });
    assert.equal(clock.pending, 0);
    assert.equal(told, 0);
  });

  it("says why the server refuses the folder", async () => {
    const loading = loaded();
    await asked(1);
    answer(0, 400, {
      name: "ConfigJsonError",
      data: { message: "Invalid symbol", path: "/work/opencode.json" },
    });
    await assert.rejects(loading, /can't work in this folder: Invalid symbol \(in \/work\/opencode\.json\)/);
    assert.equal(clock.pending, 0);
  });

  it("doesn't take a fault of the server for a refusal, which lasts", async () => {
    const loading = loaded();
    await asked(1);
    answer(0, 503, {});
    await assert.rejects(
      loading,
      (error) => error instanceof ConnectionError && error.failure.code === "start-failed",
    );
  });

  for (const answered of [0, 1])
    it(`sends a second request after 2 s, reports that, and uses the answer to request ${answered + 1}`, async () => {
      const loading = loaded();
      await asked(1);
      clock.advance(1_999);
      assert.equal(told, 0);
      clock.advance(1);
      assert.equal(told, 1);
      await asked(2);
      clock.advance(80_000);
      const other = server.questions[1 - answered]?.response as ServerResponse;
      const closed = once(other, "close");
      answer(answered, 200, { directory: "/work" });
      assert.equal((await loading).directory, "/work");
      await closed;
      assert.equal(server.questions.length, 2);
      assert.equal(told, 1);
      assert.equal(clock.pending, 0);
    });

  it("fails if the server goes away", async () => {
    const loading = loaded();
    await asked(1);
    server.stop();
    await assert.rejects(
      loading,
      (error) => error instanceof ConnectionError && error.failure.code === "unreachable",
    );
    assert.equal(clock.pending, 0);
  });

  it("fails without an answer in time, and cancels its requests", async () => {
    const loading = loaded();
    await asked(1);
    const closed = once(server.questions[0]?.response as ServerResponse, "close");
    clock.advance(90_000);
    await assert.rejects(
      loading,
      (error) => error instanceof ConnectionError && error.failure.code === "start-timeout",
    );
    await closed;
    assert.equal(clock.pending, 0);
  });

  it("ends at once with the signal, and cancels its requests", async () => {
    const loading = loaded();
    await asked(1);
    const closed = once(server.questions[0]?.response as ServerResponse, "close");
    abort.abort();
    await assert.rejects(loading, { name: "AbortError" });
    await closed;
    assert.equal(clock.pending, 0);
    await assert.rejects(loaded(), { name: "AbortError" });
  });
});
