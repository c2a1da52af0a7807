import assert from "node:assert/strict";
import { Connecting } from "../../src/daemon/connecting.ts";
import { Semaphore } from "../../src/daemon/semaphore.ts";
import { ActiveSession } from "../../src/engine/active-session.ts";
import { TaskEngine } from "../../src/engine/engine.ts";
import { ServerFailure, type AgentServer, type Logger } from "../../src/engine/ports.ts";
import { OpenCodeConnection } from "../../src/opencode/connection.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import { createSession, notices, openWindow, realClock, noOwnServers } from "../support/engine.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { remembered } from "../support/remembered.ts";
import { roughTokens } from "../support/rough-tokens.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";
import { ENGINE_SETTINGS } from "../support/engine-settings.ts";
import { noWorktrees } from "../support/no-worktrees.ts";

const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

describe("connecting to a server whose answers fail", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
  });
  /** Lets a task end without its parent being notified. */
  async function endUnseen(parent: string): Promise<void> {
    const window = await openWindow(server);
    const { id } = await window.engine.launch({
      prompt: script([{ text: "Unseen.", gate: "unseen" }]),
      parentSessionID: parent,
      launchedBy: "person",
    });
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    window.dispose();
    model.release("unseen");
    await until("the end of the turn", async () => {
      const statuses = await (await server.fetch("/session/status")).json();
      return !(id in (statuses as object));
    });
  }

  it("reads the sessions again by itself until it succeeds, and then notifies the parent", async () => {
    const parent = await createSession(server);
    await endUnseen(parent);

    const connection = new OpenCodeConnection({
      directory: server.directory,
      settings: () => ({ url: server.url, startTimeoutMs: 60_000 }),
      password: async () => server.password,
      ownServers: noOwnServers,
      env: server.env,
      events: new ServerEvents(realClock),
      clock: realClock,
      logger,
    });
    let failures = 2;
    const failing = new Proxy<AgentServer>(connection.server, {
      get(target, name) {
        if (name === "sessions" && failures-- > 0)
          return () => Promise.reject(new ServerFailure("GET /session", "unreachable", "It broke."));
        const value = Reflect.get(target, name) as unknown;
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    const engine = new TaskEngine({
      server: failing,
      clock: realClock,
      logger,
      random: Math.random,
      tombstones: remembered(),
      tokens: roughTokens,
      worktrees: noWorktrees,
      settings: () => ENGINE_SETTINGS,
    });
    const session = new ActiveSession(engine, failing, logger);
    const starts = new Semaphore(1);
    const connecting = new Connecting({
      connection,
      engine,
      session,
      starts,
      unasked: () => "join",
      left: () => undefined,
      clock: realClock,
      logger,
    });
    const told: string[] = [];
    connecting.onDidChange(() => told.push(connecting.state.kind));
    await assert.rejects(connecting.connect(), /It broke/);
    assert.equal(connecting.state.kind, "failed");
    await until("the tasks to be known", () => connecting.state.kind === "connected");
    await until("the notice", async () => (await notices(server, parent)).length === 1);
    assert.ok(told.filter((kind) => kind === "failed").length >= 2, told.join());
    connecting.dispose();
    session.dispose();
    engine.dispose();
    connection.dispose();
  });
});
