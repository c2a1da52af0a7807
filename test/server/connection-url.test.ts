import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { RequestListener } from "node:http";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { ServerFailure } from "../../src/engine/ports.ts";
import type { ServerEvent } from "../../src/engine/server-model.ts";
import { english } from "../../src/engine/sentence.ts";
import { OpenCodeConnection, type ConnectionOptions } from "../../src/opencode/connection.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import { collectGarbage } from "../support/collect-garbage.ts";
import { createSession, openWindow, noOwnServers } from "../support/engine.ts";
import { startHaltingProxy } from "../support/halting-proxy.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { startStranger } from "../support/stranger.ts";
import { openCodeVersion, startOpenCode } from "../support/opencode.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { until } from "../support/wait.ts";
import { failureOf, realClock, silentLogger } from "./desk.ts";

describe("Connection to a server that is already running", function () {
  this.timeout(60_000);
  let model: ScriptedModel;
  let opencode: OpenCodeServer;
  const connections: OpenCodeConnection[] = [];
  const servers: Server[] = [];

  before(async () => {
    model = await startScriptedModel();
    opencode = await startOpenCode({ model });
  });
  after(async () => {
    await opencode?.stop();
    await model?.stop();
  });
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.dispose();
    for (const server of servers.splice(0)) server.close();
  });

  function connectionTo(
    url: string,
    password?: string,
    env: Record<string, string> = {},
    options: Partial<ConnectionOptions> = {},
  ): OpenCodeConnection {
    const connection = new OpenCodeConnection({
      directory: opencode.directory,
      settings: () => ({ url, path: undefined, startTimeoutMs: 1_000 }),
      password: () => Promise.resolve(password),
      ownServers: noOwnServers,
      env,
      events: new ServerEvents(options.clock ?? realClock),
      clock: realClock,
      logger: silentLogger,
      ...options,
    });
    connections.push(connection);
    return connection;
  }
  async function listening(server: Server): Promise<string> {
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const http = (listener: RequestListener) => listening(createHttpServer(listener));
  /** An address where nothing listens anymore. */
  async function deserted(): Promise<string> {
    const url = await http(() => {});
    servers.pop()?.close();
    return url;
  }
  const reconnected = (connection: OpenCodeConnection) =>
    new Promise<void>((resolve) => {
      const subscription = connection.onDidConnect(() => {
        subscription.dispose();
        resolve();
      });
    });

  it("[EXT-1] connects to a running server, reports its events, and makes calls", async () => {
    const connection = connectionTo(opencode.url, opencode.password);
    const events: ServerEvent[] = [];
    connection.server.onEvent((event) => events.push(event));
    let connects = 0;
    connection.onDidConnect(() => connects++);
    await connection.connect();
    assert.equal(connects, 1);
    assert.deepEqual(connection.state, {
      kind: "connected",
      url: opencode.url,
      version: openCodeVersion(),
      own: false,
    });
    const session = await connection.server.createSession({ title: "mine" });
    await until("the event", () =>
      events.find((event) => event.type === "session-changed" && event.session.id === session.id),
    );
    await connection.disconnect();
    assert.equal(connection.state.kind, "disconnected");
    await assert.rejects(
      connection.server.session(session.id),
      (error) => error instanceof ServerFailure && error.reason === "unreachable",
    );
    await connection.connect();
    assert.equal((await connection.server.session(session.id))?.title, "mine");
  });

  it("uses the password that was entered, else that of the URL, else that of the environment", async () => {
    const password = opencode.password ?? "";
    await connectionTo(opencode.url.replace("//", "//opencode:wrong@"), password).connect();
    await connectionTo(opencode.url.replace("//", `//opencode:${password}@`)).connect();
    await connectionTo(opencode.url, password, { OPENCODE_SERVER_PASSWORD: "wrong" }).connect();
    const connection = connectionTo(opencode.url, undefined, { OPENCODE_SERVER_PASSWORD: password });
    await connection.connect();
    assert.ok(!JSON.stringify(connection.state).includes(password));
  });

  it("shares one attempt among concurrent connects", async () => {
    const connection = connectionTo(opencode.url, opencode.password);
    let connects = 0;
    connection.onDidConnect(() => connects++);
    await Promise.all([connection.connect(), connection.adopt(), connection.connect()]);
    assert.equal(connects, 1);
  });

  it("joins a running server, and finds none if none is running", async () => {
    assert.equal(await connectionTo(opencode.url, opencode.password).adopt(), true);
    const absent = connectionTo(await deserted());
    assert.equal(await absent.adopt(), false);
    assert.equal(absent.state.kind, "disconnected");
  });

  it("reports a wrong password", async () => {
    const connection = connectionTo(opencode.url, "wrong");
    const failure = await failureOf(connection.connect());
    assert.equal(failure.code, "wrong-password");
    assert.deepEqual(connection.state, { kind: "failed", failure });
    assert.equal((await failureOf(connectionTo(opencode.url).connect())).code, "wrong-password");
  });

  it("reports that nothing responds", async () => {
    const url = await deserted();
    const failure = await failureOf(connectionTo(url).connect());
    assert.equal(failure.code, "unreachable");
    assert.ok(english(failure.message).includes(url));
  });

  for (const [what, start] of [
    ["a web page", () => http((_, response) => response.end("<html>hello</html>"))],
    ["other JSON", () => http(answering({ ok: true }))],
    ["a refusal", () => http((_, response) => response.writeHead(404).end())],
    ["a redirection", () => http((_, response) => response.writeHead(302, { location: opencode.url }).end())],
    ["another protocol", () => listening(createServer((socket) => socket.end("SSH-2.0-x\r\n")))],
  ] as const)
    it(`recognizes what is not OpenCode: ${what}`, async () => {
      const failure = await failureOf(connectionTo(await start()).connect());
      assert.equal(failure.code, "not-opencode");
    });

  it("says which version is running and which is needed", async () => {
    const url = await http(answering({ healthy: true, version: "1.17.99" }));
    const failure = await failureOf(connectionTo(url).connect());
    assert.equal(failure.code, "too-old");
    assert.match(english(failure.message), /1\.17\.99.*1\.18\.15/);
  });

  it("refuses any address other than loopback, without connecting to it", async () => {
    assert.equal((await failureOf(connectionTo("http://10.0.0.1:4096").connect())).code, "bad-url");
    // An address that leads here, so that the test sees any connection.
    let visits = 0;
    const url = await listening(createServer(() => visits++));
    const connection = connectionTo(url.replace("127.0.0.1", "0.0.0.0"), "secret");
    assert.equal((await failureOf(connection.connect())).code, "bad-url");
    assert.equal(await connection.adopt(), false);
    assert.equal(visits, 0);
  });

  it("follows no redirection to another address", async () => {
    const stranger = await startStranger();
    const proxy = await startHaltingProxy(opencode.url);
    try {
      const connection = connectionTo(proxy.url, opencode.password);
      await connection.connect();
      proxy.decide((request) => (/ \/session\b/.test(request) ? { redirect: stranger.url } : "pass"));
      const isUnreachable = (error: unknown) =>
        error instanceof ServerFailure && error.reason === "unreachable";
      await assert.rejects(connection.server.sessions(), isUnreachable);
      await assert.rejects(connection.server.createSession({ title: "secret" }), isUnreachable);
      assert.deepEqual(stranger.received, []);
    } finally {
      stranger.close();
      proxy.close();
    }
  });

  for (const [what, fate] of [
    ["is never answered", "mute"],
    ["is only half answered", "cut"],
  ] as const)
    it(`gives up a read that ${what}, even after a garbage collection`, async () => {
      const proxy = await startHaltingProxy(opencode.url);
      try {
        let callTimeoutMs: number | undefined;
        const options = { callTimeoutMs: () => callTimeoutMs };
        const connection = connectionTo(proxy.url, opencode.password, {}, options);
        await connection.connect();
        callTimeoutMs = 1_500;
        proxy.decide((request) => (request.startsWith("GET /session?") ? fate : "pass"));
        const count = proxy.requests.length;
        const call = connection.server.sessions();
        call.catch(() => undefined);
        await until("the request", () => proxy.requests.length > count);
        collectGarbage();
        const failure: unknown = await Promise.race([
          call.catch((error: unknown) => error),
          until("the end of the call", () => false, 10_000),
        ]);
        assert.ok(failure instanceof ServerFailure && failure.reason === "unreachable");
        await until("the end of the request", () => proxy.given === 1);
        callTimeoutMs = undefined;
        proxy.decide(() => "pass");
        assert.ok(Array.isArray(await connection.server.sessions()));
      } finally {
        proxy.close();
      }
    });

  it("[EVT-2] detects the end of a task even if the first read of its answer is never answered", async function () {
    this.timeout(120_000);
    const proxy = await startHaltingProxy(opencode.url);
    let callTimeoutMs: number | undefined;
    const window = await openWindow(
      { ...opencode, url: proxy.url },
      { pollInterval: 200 },
      { callTimeoutMs: () => callTimeoutMs },
    );
    try {
      const prompt = script([{ text: "Late.", gate: "late" }]);
      const parentSessionID = await createSession(opencode);
      const { id } = await window.engine.launch({
        parentSessionID,
        prompt,
        agent: "general",
        launchedBy: "person",
      });
      await model.waitForRequest(({ sessionID }) => sessionID === id);
      let held = 0;
      proxy.decide((request) => {
        if (!request.startsWith(`GET /session/${id}/message`) || held++ > 0) return "pass";
        // Calls that are made later are answered, however busy the machine is.
        callTimeoutMs = undefined;
        return "mute";
      });
      callTimeoutMs = 4_000;
      model.release("late");
      await until("a read that is not answered", () => held > 0);
      const isDone = (): boolean => {
        collectGarbage();
        return window.engine.get(id)?.status === "completed";
      };
      await until("the end of the task", isDone, 60_000);
      assert.equal(window.connection.state.kind, "connected");
    } finally {
      window.dispose();
      proxy.close();
    }
  });

  it("can be cancelled while it waits for an answer", async () => {
    const url = await http(() => {});
    const connection = connectionTo(url);
    const abort = new AbortController();
    const connecting = connection.connect(abort.signal);
    await until("connecting", () => connection.state.kind === "connecting");
    abort.abort();
    await assert.rejects(connecting, { name: "AbortError" });
    await until("the end of the attempt", () => connection.state.kind === "disconnected");
    await assert.rejects(connection.connect(AbortSignal.abort()), { name: "AbortError" });
  });

  it("reopens an interrupted stream, and connects again", async () => {
    const { hostname, port } = new URL(opencode.url);
    const cuts: (() => void)[] = [];
    const proxy = createServer((socket) => {
      const upstream = connect(Number(port), hostname);
      socket.pipe(upstream).pipe(socket);
      for (const one of [socket, upstream]) one.on("error", () => {});
      cuts.push(() => {
        socket.destroy();
        upstream.destroy();
      });
    });
    const connection = connectionTo(await listening(proxy), opencode.password);
    await connection.connect();
    const events: ServerEvent[] = [];
    connection.server.onEvent((event) => events.push(event));
    const again = reconnected(connection);
    for (const cut of cuts.splice(0)) cut();
    await until("reconnecting", () => connection.state.kind === "reconnecting");
    await again;
    assert.equal(connection.state.kind, "connected");
    const session = await connection.server.createSession({ title: "after" });
    await until("an event", () =>
      events.some((event) => event.type === "session-changed" && event.session.id === session.id),
    );
  });

  it("finds the server again after its restart", async () => {
    const connection = connectionTo(opencode.url, opencode.password);
    await connection.connect();
    await opencode.kill();
    await until("reconnecting", () => connection.state.kind === "reconnecting");
    assert.equal((await failureOf(connection.connect())).code, "unreachable");
    const again = reconnected(connection);
    await opencode.restart();
    await again;
    assert.equal(connection.state.kind, "connected");
  });

  it("reports nothing once disposed", async () => {
    const connection = connectionTo(opencode.url, opencode.password);
    await connection.connect();
    let told = 0;
    connection.onDidChangeState(() => told++);
    connection.server.onEvent(() => told++);
    connection.dispose();
    const before = told;
    const other = connectionTo(opencode.url, opencode.password);
    await other.connect();
    const seen = new Promise<void>((resolve) => other.server.onEvent(() => resolve()));
    await other.server.createSession({ title: "unheard" });
    await seen;
    assert.equal(told, before);
    await assert.rejects(connection.connect(), { name: "AbortError" });
  });
});

function answering(body: unknown): RequestListener {
  return (_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}
