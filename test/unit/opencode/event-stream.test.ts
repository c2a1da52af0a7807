import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { english, type Text } from "../../../src/engine/sentence.ts";
import { EventStream } from "../../../src/opencode/event-stream.ts";
import { ServerEvents } from "../../../src/opencode/server-events.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeEvents } from "./fake-events.ts";

describe("Event stream", () => {
  let events: FakeEvents;
  let clock: FakeClock;
  let stream: EventStream;
  let ready: (signal: AbortSignal) => Promise<void>;
  const told = {
    opened: 0,
    payloads: [] as unknown[],
    cuts: [] as { reason: Text; cuts: number }[],
  };

  beforeEach(async () => {
    events = await FakeEvents.start();
    clock = new FakeClock();
    Object.assign(told, { opened: 0, payloads: [], cuts: [] });
    ready = () => Promise.resolve();
    stream = new EventStream({
      clock,
      random: () => 0.5,
      follow: async (follower, signal) => {
        await ready(signal);
        return new ServerEvents(clock).follow(events.access, "/work", follower);
      },
      onOpen: () => told.opened++,
      onPayload: (payload) => told.payloads.push(payload),
      onCut: (cut) => told.cuts.push(cut),
    });
  });
  afterEach(() => {
    stream.dispose();
    events.stop();
  });

  const opened = (times: number) => until(`opening ${times}`, () => told.opened === times);
  const cut = (times: number) => until(`cut ${times}`, () => told.cuts.length === times);

  it("reports that it opened, and then each event", async () => {
    await opened(1);
    events.send(events.connections[0], { type: "a" }, "/work");
    await until("the event", () => told.payloads.length === 1);
  });

  it("reopens after an end, with growing pauses", async () => {
    await opened(1);
    events.connections[0]?.end();
    await cut(1);
    assert.equal(told.cuts[0]?.cuts, 1);
    clock.advance(499);
    assert.equal(events.connections.length, 1);
    clock.advance(1);
    await opened(2);
    events.connections[1]?.destroy();
    await cut(2);
    assert.equal(told.cuts[1]?.cuts, 2);
    clock.advance(999);
    assert.equal(events.connections.length, 2);
    clock.advance(1);
    await opened(3);
  });

  it("forgets earlier failures once it was open for a while", async () => {
    await opened(1);
    events.connections[0]?.end();
    await cut(1);
    clock.advance(500);
    await opened(2);
    clock.advance(60_000);
    events.connections[1]?.end();
    await cut(2);
    assert.equal(told.cuts[1]?.cuts, 1);
    clock.advance(500);
    await opened(3);
  });

  it("reopens after 25 s without a byte, while it is watched", async () => {
    await opened(1);
    stream.setWatched(true);
    clock.advance(24_000);
    events.connections[0]?.write(": a comment is a sign of life\n\n");
    events.send(events.connections[0], { type: "a" }, "/work");
    await until("the event", () => told.payloads.length === 1);
    clock.advance(24_000);
    assert.equal(told.cuts.length, 0);
    clock.advance(1_000);
    await cut(1);
    assert.match(english(told.cuts[0]?.reason ?? ""), /silent for 25 s/);
  });

  it("has no timer while nobody watches it, and detects the silence once somebody does", async () => {
    await opened(1);
    assert.equal(clock.pending, 0);
    clock.advance(60_000);
    assert.deepEqual(told.cuts, []);
    stream.setWatched(true);
    await cut(1);
  });

  it("gives up a request that is never answered", async () => {
    await opened(1);
    events.answering = false;
    events.connections[0]?.end();
    await cut(1);
    clock.advance(500);
    await until("the request", () => events.connections.length === 2);
    clock.advance(10_000);
    await cut(2);
    assert.match(english(told.cuts[1]?.reason ?? ""), /didn't open/);
  });

  it("waits until it may connect, without counting that as time to open", async () => {
    await opened(1);
    let goOn = (): void => {};
    ready = () => new Promise((resolve) => (goOn = resolve));
    stream.reopen();
    await until("the wait", () => goOn.length === 1);
    clock.advance(60_000);
    assert.equal(events.connections.length, 1);
    goOn();
    await opened(2);
    assert.deepEqual(told.cuts, []);
  });

  it("ends the wait when it is reopened, and reports a failed wait", async () => {
    await opened(1);
    const signals: AbortSignal[] = [];
    ready = (signal) => {
      signals.push(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("ended"))));
    };
    stream.reopen();
    await until("the wait", () => signals.length === 1);
    stream.reopen();
    await until("the next wait", () => signals.length === 2);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true, false],
    );
    assert.equal(told.cuts.length, 0);
    ready = () => Promise.reject(new Error("It is not well."));
    stream.reopen();
    await cut(1);
    assert.equal(told.cuts[0]?.reason, "It is not well.");
    clock.advance(500);
    await cut(2);
  });

  it("reopens at once on request, connected or waiting", async () => {
    await opened(1);
    stream.reopen();
    await opened(2);
    events.connections[1]?.end();
    await cut(1);
    stream.reopen();
    await opened(3);
    assert.equal(told.cuts.length, 1);
  });

  it("reopens at once if the server ended, and reports that once", async () => {
    await opened(1);
    stream.reopen("It ended.");
    await opened(2);
    assert.deepEqual(
      told.cuts.map(({ reason }) => reason),
      ["It ended."],
    );
    events.connections[1]?.end();
    await cut(2);
    stream.reopen("It ended.");
    await opened(3);
    assert.equal(told.cuts.length, 2);
  });

  it("reports nothing once disposed, and leaves no timer", async () => {
    await opened(1);
    const closed = once(events.connections[0] as ServerResponse, "close");
    stream.setWatched(true);
    stream.dispose();
    await closed;
    assert.equal(clock.pending, 0);
    assert.deepEqual(told.cuts, []);
  });
});
