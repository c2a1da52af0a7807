import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  WriterElection,
  type Role,
  type WriterElectionOptions,
} from "../../../src/bridge/writer-election.ts";
import { reachSeat, seatPath } from "../../../src/bridge/writer-seat.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

describe("The writer's election", () => {
  let seat: string;
  let clock: ManualClock;
  const elections: WriterElection[] = [];
  const errors: string[] = [];

  beforeEach(() => {
    seat = seatPath(tempDir("seat"), "http://127.0.0.1:1", "/work");
    clock = new ManualClock();
    errors.length = 0;
  });

  afterEach(() => {
    for (const election of elections.splice(0)) election.dispose();
  });

  function election(options: Partial<WriterElectionOptions> = {}): WriterElection {
    const created = new WriterElection({
      seat,
      handle: async (method, args) => ({ method, args }),
      setWriting: async () => undefined,
      clock,
      logger: { debug() {}, info() {}, warn() {}, error: (message) => void errors.push(message) },
      ...options,
    });
    elections.push(created);
    return created;
  }

  async function started(options: Partial<WriterElectionOptions> = {}): Promise<WriterElection> {
    const created = election(options);
    await created.start();
    return created;
  }

  it("makes the first window the writer and the others readers, whose calls it carries out", async () => {
    const writer = await started({ handle: async (method, args) => [method, args, "by the first"] });
    const reader = await started();
    assert.deepEqual([writer.role, reader.role], ["writer", "reader"]);
    const prompt = "ü\n".repeat(500_000);
    for (const each of [writer, reader])
      assert.deepEqual(await each.call("launch", [prompt]), ["launch", [prompt], "by the first"]);
    const many = await Promise.all(Array.from({ length: 50 }, (_, n) => reader.call("m", n)));
    assert.deepEqual(
      many.map((result) => (result as unknown[])[1]),
      Array.from({ length: 50 }, (_, n) => n),
    );
  });

  it("brings refusals and failures to the caller as what they are, still to be translated", async () => {
    const thrown = {
      refusal: new Refusal(
        "wrong-status",
        sentence("Task {0} has the status {1}.", "a1", sentence("running")),
      ),
      failure: new ServerFailure("POST /session", "refused", sentence("The server refused."), 400),
      other: new TypeError("A mistake."),
    };
    await started({ handle: (method) => Promise.reject(thrown[method as keyof typeof thrown]) });
    const reader = await started();
    await assert.rejects(reader.call("refusal", []), thrown.refusal);
    await assert.rejects(reader.call("failure", []), thrown.failure);
    await assert.rejects(reader.call("other", []), new Error("A mistake."));
  });

  it("refuses what is too long, in either direction, and goes on", async () => {
    await started({ handle: async (method) => (method === "long" ? "x".repeat(9_000_000) : "short") });
    const reader = await started();
    await assert.rejects(reader.call("m", "x".repeat(9_000_000)), {
      name: "Refusal",
      code: "invalid-argument",
    });
    await assert.rejects(reader.call("long", []), { name: "Refusal", code: "invalid-argument" });
    assert.equal(await reader.call("m", []), "short");
    assert.equal(reader.role, "reader");
  });

  it("lets a reader take over at once when the writer goes; what it was doing is unknown, what waits goes to the next", async () => {
    const calls: string[] = [];
    const writer = await started({
      handle: (method) => {
        calls.push(method);
        return new Promise(() => undefined);
      },
    });
    const reader = await started({ handle: async (method) => `${method} by the second` });
    const roles: Role[] = [];
    reader.onDidChangeRole((role) => roles.push(role));
    const sent = reader.call("sent", []);
    sent.catch(() => undefined);
    await until("the call", () => calls.length === 1);
    writer.dispose();
    await assert.rejects(sent, (error: unknown) => {
      assert.ok(error instanceof ServerFailure);
      assert.deepEqual([error.call, error.reason], ["sent", "unreachable"]);
      return true;
    });
    assert.equal(await reader.call("unsent", []), "unsent by the second");
    assert.deepEqual(roles, ["none", "writer"]);
  });

  it("carries out no command before the window that takes over is ready to write", async () => {
    const order: string[] = [];
    let ready = (): void => undefined;
    const writer = election({
      setWriting: async (writing) => {
        order.push(`writing ${writing}`);
        if (writing) await new Promise<void>((resolve) => (ready = resolve));
      },
      handle: async (method) => void order.push(method),
    });
    const starting = writer.start();
    const own = writer.call("own", []);
    await until("the take-over", () => order.length === 1);
    const reader = await started();
    const theirs = reader.call("theirs", []);
    assert.deepEqual([writer.role, reader.role], ["none", "reader"]);
    ready();
    await Promise.all([starting, own, theirs]);
    assert.equal(order[0], "writing true");
    assert.deepEqual(order.slice(1).sort(), ["own", "theirs"]);
  });

  it("finishes what it carries out and ceases to write before another window takes over", async () => {
    const order: string[] = [];
    let finish: (() => void) | undefined;
    const writer = await started({
      handle: async () => {
        await new Promise<void>((resolve) => (finish = resolve));
        return order.push("finished");
      },
      setWriting: async (writing) => void order.push(`first ${writing}`),
    });
    const reader = await started({ setWriting: async (writing) => void order.push(`second ${writing}`) });
    const call = reader.call("slow", []);
    const finishing = await until("the call", () => finish);
    const stopping = writer.stop();
    await assert.rejects(writer.call("late", []), { name: "ServerFailure", reason: "unreachable" });
    assert.deepEqual([writer.role, reader.role], ["none", "reader"]);
    finishing();
    await Promise.all([stopping, until("the take-over", () => reader.role === "writer")]);
    assert.equal(await call, 2);
    assert.deepEqual(order, ["first true", "finished", "first false", "second true"]);
  });

  it("closes the connection of whoever says something else", async () => {
    const writer = await started();
    for (const junk of ["hello\n", '{"id":"1"}\n', "x".repeat(8_100_000)]) {
      const socket = await reachSeat(seat);
      assert.ok(socket);
      socket.on("error", () => undefined).resume();
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.write(junk);
      await closed;
    }
    assert.equal(writer.role, "writer");
  });

  it("says so where no window can be chosen, and tries again", async () => {
    const folder = join(tempDir("seat"), "file");
    writeFileSync(folder, "");
    seat = join(folder, "writer");
    const only = election();
    await assert.rejects(only.start());
    await assert.rejects(only.call("launch", []), { name: "ServerFailure", reason: "unreachable" });
    assert.equal(errors.length, 1);
    rmSync(folder);
    await clock.advance(1_000);
    assert.deepEqual(await only.call("launch", [1]), { method: "launch", args: [1] });
  });

  it("can be stopped and started again at any time", async () => {
    const first = election();
    const starting = first.start();
    starting.catch(() => undefined);
    await first.stop();
    await assert.rejects(starting);
    assert.equal(first.role, "none");
    await assert.rejects(first.call("m", []), { reason: "unreachable" });
    const second = await started();
    assert.equal(second.role, "writer");
    await first.start();
    assert.equal(first.role, "reader");
    await Promise.all([second.stop(), until("the take-over", () => first.role === "writer")]);
    await second.start();
    assert.equal(second.role, "reader");
  });
});
