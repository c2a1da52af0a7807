import assert from "node:assert/strict";
import { once } from "node:events";
import { ServerEvents } from "../../../src/opencode/server-events.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeEvents } from "./fake-events.ts";

/** Records what it receives: `open`, the types of events, and why it ended. */
function follower() {
  const told: string[] = [];
  return {
    told,
    onOpen: () => void told.push("open"),
    onPayload: (payload: unknown) => void told.push((payload as { type: string }).type),
    onEnd: (error?: unknown) => void told.push(error instanceof Error ? error.message : "ended"),
  };
}

describe("Events of a server", () => {
  let server: FakeEvents;
  let clock: FakeClock;
  let events: ServerEvents;
  const [a, b] = ["/a", "/b"];

  beforeEach(async () => {
    server = await FakeEvents.start();
    clock = new FakeClock();
    events = new ServerEvents(clock);
  });
  afterEach(() => server.stop());

  async function followed(directory = a, access = server.access) {
    const one = follower();
    const following = events.follow(access, directory, one);
    await until("the opening", () => one.told.includes("open"));
    return { following, told: one.told };
  }
  const has = (told: readonly string[], type: string) => until(type, () => told.includes(type));
  const connection = (index = 0) => {
    const response = server.connections[index];
    assert.ok(response);
    return response;
  };

  it("come over one connection, each only to followers of its folder", async () => {
    const [first, same, second] = [await followed(), await followed(), await followed(b)];
    server.send(connection(), { type: "ofA" }, a);
    server.send(connection(), { type: "ofB" }, b);
    server.send(connection(), { type: "ofNobody" }, "/c");
    server.send(connection(), { type: "server.heartbeat" });
    for (const { told } of [first, same, second]) await has(told, "server.heartbeat");
    assert.deepEqual(first.told, ["open", "ofA", "server.heartbeat"]);
    assert.deepEqual(same.told, ["open", "ofA", "server.heartbeat"]);
    assert.deepEqual(second.told, ["open", "ofB", "server.heartbeat"]);
    assert.equal(server.connections.length, 1);
  });

  it("of further directories come to a follower that adds them, each once, until it removes them", async () => {
    const places: (string | undefined)[] = [];
    const one = { ...follower(), onPayload: (_: unknown, directory?: string) => void places.push(directory) };
    const following = events.follow(server.access, a, one);
    const other = await followed(b);
    await until("the opening", () => one.told.includes("open"));
    following.add("/a.worktrees/1");
    server.send(connection(), { type: "inWorktree" }, "/a.worktrees/1");
    server.send(connection(), { type: "server.heartbeat" });
    await has(other.told, "server.heartbeat");
    assert.deepEqual(places, ["/a.worktrees/1", undefined]);
    following.remove("/a.worktrees/1");
    server.send(connection(), { type: "server.instance.disposed" }, "/a.worktrees/1");
    server.send(connection(), { type: "ofA" }, a);
    server.send(connection(), { type: "ofB" }, b);
    await has(other.told, "ofB");
    assert.deepEqual([places, one.told], [["/a.worktrees/1", undefined, a], ["open"]]);
    following.add("/a.worktrees/2");
    following.dispose();
    other.following.dispose();
    await once(connection(), "close");
  });

  it("come over a separate connection for each password", async () => {
    await followed();
    await followed(a, { ...server.access, password: "another" });
    assert.equal(server.connections.length, 2);
  });

  it("are read correctly, wherever the network splits them", async () => {
    const { told } = await followed();
    for (const byte of Buffer.from(`data: {"directory":"/a","payload":{"type":"ü"}}\n\n`)) {
      connection().write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await has(told, "ü");
  });

  it("continue for others when one unfollows; the last one closes the connection", async () => {
    const [first, second] = [await followed(), await followed(b)];
    const closed = once(connection(), "close");
    first.following.dispose();
    server.send(connection(), { type: "ofA" }, a);
    server.send(connection(), { type: "ofB" }, b);
    await has(second.told, "ofB");
    assert.ok(!first.told.includes("ofA"));
    second.following.dispose();
    await closed;
    assert.deepEqual(second.told, ["open", "ofB"]);
    assert.equal(clock.pending, 0);
    await followed();
    assert.equal(server.connections.length, 2);
  });

  it("end for all when the stream breaks; a new follower gets a new connection", async () => {
    const [first, second] = [await followed(), await followed(b)];
    connection().end();
    for (const { told } of [first, second]) await has(told, "ended");
    const again = await followed();
    for (const { following } of [first, second]) following.dispose();
    server.send(connection(1), { type: "next" }, a);
    await has(again.told, "next");
    assert.equal(server.connections.length, 2);
  });

  it("end for all after a silence while one watches", async () => {
    const [first, second] = [await followed(), await followed(b)];
    first.following.setWatched(true);
    second.following.setWatched(true);
    second.following.setWatched(false);
    clock.advance(25_000);
    for (const { told } of [first, second])
      assert.equal(told.at(-1), "The event stream was silent for 25 s.");
  });

  it("don't count as silent because the clock was set", async () => {
    const { following, told } = await followed();
    following.setWatched(true);
    clock.advance(20_000);
    server.send(connection(), { type: "sign" }, a);
    await has(told, "sign");
    clock.set(3_600_000);
    clock.advance(24_000);
    assert.equal(told.at(-1), "sign");
    clock.set(-7_200_000);
    clock.advance(1_000);
    assert.equal(told.at(-1), "The event stream was silent for 25 s.");
  });

  it("end for one folder when the server unloads it, or when its follower throws", async () => {
    const [first, second] = [await followed(), await followed(b)];
    const failing = { ...follower(), onPayload: () => assert.fail("A mistake.") };
    events.follow(server.access, "/c", failing);
    server.send(connection(), { type: "server.instance.disposed" }, a);
    server.send(connection(), { type: "ofC" }, "/c");
    server.send(connection(), { type: "ofB" }, b);
    await has(second.told, "ofB");
    assert.deepEqual(first.told, ["open", "ended"]);
    assert.deepEqual(failing.told, ["open", "A mistake."]);
  });

  it("do not open if the server refuses", async () => {
    const one = follower();
    events.follow({ ...server.access, url: `${server.access.url}/refused` }, a, one);
    await until("the end", () => one.told.length > 0);
    assert.deepEqual(one.told, ["HTTP 404"]);
  });
});
