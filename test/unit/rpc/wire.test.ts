import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { until } from "../../support/wait.ts";
import { AnsweringWire } from "../../../src/rpc/answering-wire.ts";
import { Wire } from "../../../src/rpc/wire.ts";
import { WireClosed } from "../../../src/rpc/wire-closed.ts";
import { socketPair } from "./socket-pair.ts";

interface Requests {
  echo(params: { readonly text: string }): { readonly text: string };
}

interface Notifications {
  note(params: { readonly text: string }): void;
}

describe("A wire between two processes", () => {
  const held: { dispose(): void }[] = [];
  afterEach(() => {
    for (const each of held.splice(0)) each.dispose();
  });

  /** This end, the socket at the other end, and what arrives there. */
  async function connected() {
    const pair = await socketPair();
    held.push(pair);
    const wire = new Wire<Requests, Notifications>(pair.near, () => undefined);
    return { wire, socket: pair.far };
  }

  function answering(socket: Socket): unknown[] {
    const heard: unknown[] = [];
    new AnsweringWire(
      socket,
      (_method, params) => heard.push(params),
      async (_method, params) => params,
    );
    return heard;
  }

  it("carries requests and notifications in their order", async () => {
    const { wire, socket } = await connected();
    const heard = answering(socket);
    wire.notify("note", { text: "first" });
    assert.deepEqual(await wire.request("echo", [{ text: "one" }]), { text: "one" });
    assert.deepEqual(heard, [{ text: "first" }]);
  });

  it("rejects what is asked once it is closed, and drops what is only said", async () => {
    const { wire, socket } = await connected();
    const heard = answering(socket);
    const pending = wire.request("echo", [{ text: "one" }]);
    wire.close();
    await assert.rejects(pending, WireClosed);
    await wire.closed;
    assert.equal(wire.isOpen, false);
    await assert.rejects(wire.request("echo", [{ text: "two" }]), WireClosed);
    wire.notify("note", { text: "late" });
    assert.deepEqual(heard, []);
  });

  it("no longer listens to the caller's signal after the answer", async () => {
    const { wire, socket } = await connected();
    answering(socket);
    const { signal } = new AbortController();
    await wire.request("echo", [{ text: "one" }], signal);
    assert.deepEqual(getEventListeners(signal, "abort"), []);
  });

  it("is closed when the other end closes it", async () => {
    const { wire, socket } = await connected();
    socket.destroy();
    await wire.closed;
    assert.equal(wire.isOpen, false);
  });

  it("is closed to an end that no longer reads, but not to one that reads much", async () => {
    const { wire, socket } = await connected();
    const heard = answering(socket);
    const text = "x".repeat(10);
    for (let sent = 0; sent < 60_000; sent++) wire.notify("note", { text });
    await until("all of it", () => heard.length === 60_000);
    for (let sent = 0; sent < 60_000; sent++) wire.notify("note", { text });
    await until("all of it", () => heard.length === 120_000);
    assert.ok(wire.isOpen);
    socket.pause();
    for (let sent = 0; sent <= 100_000; sent++) wire.notify("note", { text });
    await wire.closed;
  });
});
