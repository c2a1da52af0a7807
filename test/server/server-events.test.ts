import assert from "node:assert/strict";
import type { ServerEvent } from "../../src/engine/server-model.ts";
import { OpenCodeConnection } from "../../src/opencode/connection.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import { noOwnServers } from "../support/engine.ts";
import { startHaltingProxy, type HaltingProxy } from "../support/halting-proxy.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { realClock, silentLogger } from "./desk.ts";

describe("Two folders on one server", function () {
  this.timeout(60_000);
  let opencode: OpenCodeServer;
  let proxy: HaltingProxy;

  before(async () => {
    opencode = await startOpenCode();
    proxy = await startHaltingProxy(opencode.url);
  });
  after(async () => {
    proxy?.close();
    await opencode?.stop();
  });

  it("share one event stream, receive only their own events, and both reconnect when it breaks", async () => {
    const events = new ServerEvents(realClock);
    const open = async () => {
      const connection = new OpenCodeConnection({
        directory: tempDir("work"),
        settings: () => ({ url: proxy.url, startTimeoutMs: 1_000 }),
        password: () => Promise.resolve(opencode.password),
        ownServers: noOwnServers,
        env: {},
        events,
        clock: realClock,
        logger: silentLogger,
      });
      const heard: ServerEvent[] = [];
      connection.server.onEvent((event) => heard.push(event));
      let connects = 0;
      connection.onDidConnect(() => connects++);
      await connection.connect();
      const create = () => connection.server.createSession({ title: "mine" });
      const hears = (id: string) =>
        heard.some((event) => event.type === "session-changed" && event.session.id === id);
      return { connection, create, hears, connects: () => connects };
    };
    const streams = () => proxy.requests.filter((request) => request.includes("/event"));
    const [first, second] = [await open(), await open()];
    const exchange = async () => {
      const [ofFirst, ofSecond] = [await first.create(), await second.create()];
      await until("the events", () => first.hears(ofFirst.id) && second.hears(ofSecond.id));
      assert.ok(!first.hears(ofSecond.id) && !second.hears(ofFirst.id));
    };
    await exchange();
    assert.deepEqual(streams(), ["GET /global/event"]);

    proxy.sever();
    await until("the next connections", () => first.connects() === 2 && second.connects() === 2);
    await exchange();
    assert.deepEqual(streams(), ["GET /global/event", "GET /global/event"]);

    first.connection.dispose();
    const { id } = await second.create();
    await until("the event", () => second.hears(id));
    assert.equal(second.connects(), 2);
    second.connection.dispose();
  });
});
