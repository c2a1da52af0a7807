import assert from "node:assert/strict";
import type { ConnectionState } from "../../../src/engine/connection.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { Emitter } from "../../../src/engine/event.ts";
import { english } from "../../../src/engine/sentence.ts";
import { Connecting, type ConnectingOptions } from "../../../src/daemon/connecting.ts";
import { Semaphore } from "../../../src/daemon/semaphore.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { realClock } from "../../support/engine.ts";
import { until } from "../../support/wait.ts";

describe("connecting many folders", () => {
  const starts = new Semaphore(2);
  let made: FakeFolder[];

  beforeEach(() => (made = []));
  afterEach(() => made.forEach(({ connecting }) => connecting.dispose()));

  /** A folder whose server starts on demand. */
  class FakeFolder {
    isLeft = false;
    private readonly states = new Emitter<ConnectionState>((error) => assert.fail(String(error)));
    private readonly connects = new Emitter<void>((error) => assert.fail(String(error)));
    state: ConnectionState = { kind: "disconnected" };
    /** What reading its tasks does. */
    read = async (): Promise<void> => undefined;
    finish: () => void = () => assert.fail("not started");
    /** Whether a server that can be joined is running for it. */
    hasServer = false;
    readonly connecting: Connecting;

    constructor() {
      const connection = {
        state: undefined,
        onDidChangeState: this.states.event,
        onDidConnect: this.connects.event,
        connect: (signal?: AbortSignal) =>
          new Promise<void>((resolve, reject) => {
            this.set({ kind: "connecting", detail: "Starting OpenCode…" });
            signal?.addEventListener("abort", () => {
              this.set({ kind: "disconnected" });
              reject(signal.reason as Error);
            });
            this.finish = () => {
              this.set({ kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true });
              this.connects.fire();
              resolve();
            };
          }),
        adopt: async () => {
          if (this.hasServer)
            this.set({ kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true });
          return this.hasServer;
        },
        stopServer: async () => undefined,
        disconnect: async () => this.set({ kind: "disconnected" }),
      };
      Object.defineProperty(connection, "state", { get: () => this.state });
      this.connecting = new Connecting({
        connection: connection as unknown as ConnectingOptions["connection"],
        engine: { connect: () => this.read(), disconnect: () => undefined },
        session: { refresh: async () => undefined },
        starts,
        unasked: () => "connect",
        left: () => void (this.isLeft = true),
        clock: realClock,
        logger: strictLogger,
      });
      made.push(this);
    }

    private set(state: ConnectionState): void {
      this.state = state;
      this.states.fire(state);
    }
  }

  /** Connects them all; returns a function for the outcome of each. */
  const connectAll = (): ((at: number) => Promise<void>) => {
    const all = made.map(({ connecting }) => connecting.connect());
    for (const one of all) one.catch(() => undefined);
    return (at) => all[at] ?? assert.fail("no such folder");
  };
  const kinds = (): readonly string[] => made.map(({ state }) => state.kind);

  it("starts two servers at a time; the others report that they are waiting, and a waiting one can be cancelled", async () => {
    const [first, second] = [new FakeFolder(), new FakeFolder()];
    const [third, fourth] = [new FakeFolder(), new FakeFolder()];
    const connecting = connectAll();
    await until("two to start", () => kinds().filter((kind) => kind === "connecting").length === 2);
    const { state } = third.connecting;
    assert.ok(state.kind === "connecting" && /Waiting/.test(english(state.detail)));
    await third.connecting.stopServer();
    await assert.rejects(
      connecting(2),
      (error) => error instanceof Refusal && error.code === "cancelled-by-caller",
    );
    assert.equal(third.connecting.state.kind, "disconnected");
    assert.deepEqual(
      made.map(({ isLeft }) => isLeft),
      [false, false, true, false],
    );
    assert.deepEqual(kinds(), ["connecting", "connecting", "disconnected", "disconnected"]);
    first.finish();
    await until("the next to start", () => fourth.state.kind === "connecting");
    fourth.finish();
    second.finish();
    await Promise.all([0, 1, 3].map(connecting));
    assert.ok(!starts.isReached);
  });

  it("is cancelled for all who wait, also while the tasks are being read", async () => {
    const folder = new FakeFolder();
    folder.read = () => new Promise(() => undefined);
    const all = [folder.connecting.connect(), folder.connecting.connect()];
    const outcomes = all.map((one) => assert.rejects(one, { code: "cancelled-by-caller" }));
    await until("it to start", () => folder.state.kind === "connecting");
    folder.finish();
    await until("it to read", () => folder.state.kind === "connected");
    assert.equal(folder.connecting.state.kind, "connecting");
    await folder.connecting.cancel();
    await Promise.all(outcomes);
    assert.equal(folder.state.kind, "disconnected");
  });

  it("a folder that is closed while its server starts, or while it waits, frees its place", async () => {
    const [starting, other, waiting] = [new FakeFolder(), new FakeFolder(), new FakeFolder()];
    const connecting = connectAll();
    await until("two to start", () => kinds().filter((kind) => kind === "connecting").length === 2);
    waiting.connecting.dispose();
    starting.connecting.dispose();
    await assert.rejects(connecting(2), /cancelled/);
    await assert.rejects(connecting(0), /cancelled/);
    other.finish();
    await connecting(1);
    assert.ok(!starts.isReached);
  });

  it("a folder whose server is already running joins it without waiting for its turn", async () => {
    const [first, second, running] = [new FakeFolder(), new FakeFolder(), new FakeFolder()];
    const starting = [first.connecting.connect(), second.connecting.connect()];
    await until("two to start", () => kinds().filter((kind) => kind === "connecting").length === 2);
    running.hasServer = true;
    void running.connecting.join();
    await until("it to have joined", () => running.state.kind === "connected");
    first.finish();
    second.finish();
    await Promise.all(starting);
    assert.ok(!starts.isReached);
  });
});
