import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ConnectionState } from "../../src/engine/connection.ts";
import { english } from "../../src/engine/sentence.ts";
import { createSession, ended, openWindow } from "../support/engine.ts";
import { hermeticEnv, startOpenCode } from "../support/opencode.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { FakeClock } from "../unit/opencode/fake-clock.ts";
import { Desk, failureOf } from "./desk.ts";

/** How long the plugins' preparation is held up: longer than the event stream may take to open. */
const LONG_MS = 60_000;

/** A package registry that holds all requests until it is released, and then has no package. */
class HeldRegistry {
  private readonly held: ServerResponse[] = [];
  private isReleased = false;
  isAsked = false;

  private constructor(private readonly server: Server) {
    server.on("request", (_, response) => {
      this.isAsked = true;
      if (this.isReleased) response.writeHead(404).end();
      else this.held.push(response);
    });
  }

  static async start(): Promise<HeldRegistry> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new HeldRegistry(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  release(): void {
    this.isReleased = true;
    for (const response of this.held.splice(0)) response.writeHead(404).end();
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** A home in which OpenCode was never started: with a plugin it installs a package before it answers for any folder. */
function freshHome(): string {
  const home = tempDir("home");
  mkdirSync(join(home, ".run"), { mode: 0o700 });
  return home;
}

function pluginConfig(): { plugin: string[] } {
  const file = join(tempDir("plugin"), "plugin.js");
  writeFileSync(file, 'export default { id: "does-nothing", server: async () => ({}) };\n');
  return { plugin: [pathToFileURL(file).href] };
}

describe("Connection to a server that prepares its plugins", function () {
  this.timeout(90_000);
  let registry: HeldRegistry;
  let desk: Desk | undefined;
  beforeEach(async () => {
    registry = await HeldRegistry.start();
  });
  afterEach(async () => {
    await desk?.close();
    desk = undefined;
    registry.stop();
  });

  const openDesk = (): Desk =>
    (desk = Desk.open({
      env: { ...hermeticEnv(freshHome(), pluginConfig()), npm_config_registry: registry.url },
    }));
  const registryAsked = () => until("the installation", () => registry.isAsked, 30_000);
  const detailOf = (state: ConnectionState) =>
    state.kind === "connecting" ? english(state.detail) : state.kind;

  it("waits for its own server, says so, and connects all windows without interruption", async () => {
    const opened = openDesk();
    const clock = new FakeClock();
    const [window, second] = [opened.connection({}, { clock }), opened.connection({}, { clock })];
    const states: ConnectionState[] = [];
    window.onDidChangeState((state) => states.push(state));
    const connecting = window.connect();
    await registryAsked();
    const adopting = second.adopt();
    await until("the questions of both", () => clock.pending === 4);
    clock.advance(LONG_MS);
    for (const { state } of [window, second])
      assert.equal(
        detailOf(state),
        "OpenCode is preparing its plugins. The first time, this can take a minute…",
      );
    registry.release();
    await connecting;
    assert.equal(await adopting, true);
    assert.deepEqual(
      states.map(({ kind }) => kind).filter((kind) => kind !== "connecting"),
      ["connected"],
    );
    const { id } = await window.server.createSession({ title: "at last" });
    assert.equal((await second.server.session(id))?.title, "at last");
  });

  it("waits for a server that is already running, and launches a task on it", async () => {
    const model = await startScriptedModel();
    const server = await startOpenCode({
      model,
      home: freshHome(),
      config: pluginConfig(),
      env: { npm_config_registry: registry.url },
    });
    try {
      const clock = new FakeClock();
      const opening = openWindow(server, {}, { connectionClock: clock });
      await registryAsked();
      await until("the question", () => clock.pending === 2);
      clock.advance(LONG_MS);
      registry.release();
      const window = await opening;
      assert.ok(window.log.some((line) => line.includes("preparing its plugins")));
      assert.deepEqual(
        window.log.filter((line) => line.startsWith("warn")),
        [],
      );
      const { id } = await window.engine.launch({
        prompt: script([{ text: "done" }]),
        agent: "general",
        parentSessionID: await createSession(server),
        launchedBy: "person",
      });
      assert.equal((await ended(window, id)).status, "completed");
      window.dispose();
    } finally {
      await server.stop();
      await model.stop();
    }
  });

  it("stops waiting at once when the user cancels", async () => {
    const clock = new FakeClock();
    const window = openDesk().connection({}, { clock });
    const abort = new AbortController();
    const connecting = window.connect(abort.signal);
    await until("the question", () => clock.pending > 0, 30_000);
    clock.advance(LONG_MS);
    assert.match(detailOf(window.state), /preparing its plugins/);
    abort.abort();
    await assert.rejects(connecting, { name: "AbortError" });
    assert.equal(window.state.kind, "disconnected");
  });

  it("gives up after a time limit with its own error, and can be tried again", async () => {
    const opened = openDesk();
    const clock = new FakeClock();
    const window = opened.connection({}, { clock });
    const byUrl = () => {
      const { url, password } = opened.state() ?? {};
      return opened.connection({ url }, { clock, password: async () => password });
    };
    for (const [choose, limitMs] of [
      [() => window, 90_000],
      [byUrl, 120_000],
    ] as const) {
      const chosen = choose();
      const failing = failureOf(chosen.connect());
      await until("the question", () => clock.pending > 0, 30_000);
      clock.advance(limitMs - 1);
      assert.match(detailOf(chosen.state), /preparing its plugins/);
      clock.advance(1);
      const failure = await failing;
      assert.equal(failure.code, "start-timeout");
      assert.match(
        english(failure.message),
        new RegExp(`wasn't ready for this folder within ${limitMs / 1_000} s`),
      );
      assert.deepEqual(chosen.state, { kind: "failed", failure });
      assert.equal(clock.pending, 0);
    }
    registry.release();
    await window.connect();
    assert.equal(window.state.kind, "connected");
  });
});
