import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { listenExclusively } from "../../../src/rpc/daemon-entry.ts";
import { AnsweringWire } from "../../../src/rpc/answering-wire.ts";
import { Wire } from "../../../src/rpc/wire.ts";
import { WireClosed } from "../../../src/rpc/wire-closed.ts";

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
    const path = join(tempDir("rpc"), "wire.sock");
    const server = createServer();
    const far = once(server, "connection") as Promise<[Socket]>;
    assert.ok(await listenExclusively(server, path));
    const near = connect(path);
    const [socket] = await far;
    const wire = new Wire<Requests, Notifications>(near, () => undefined);
    held.push({ dispose: () => (near.destroy(), socket.destroy(), server.close()) });
    return { wire, socket };
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
