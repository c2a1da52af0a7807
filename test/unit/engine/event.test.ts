import assert from "node:assert/strict";
import { Emitter, logged, unlessCancelled } from "../../../src/engine/event.ts";
import { settled } from "../../support/manual-clock.ts";

describe("An event", () => {
  const fail = (error: unknown): never => {
    throw error;
  };

  it("reaches its listeners in their order, each until it is disposed", () => {
    const emitter = new Emitter<number>(fail);
    const heard: string[] = [];
    const first = emitter.event((value) => heard.push(`first ${value}`));
    emitter.event((value) => heard.push(`second ${value}`));
    assert.equal(emitter.size, 2);
    emitter.fire(1);
    first.dispose();
    first.dispose();
    assert.equal(emitter.size, 1);
    emitter.fire(2);
    assert.deepEqual(heard, ["first 1", "second 1", "second 2"]);
    emitter.dispose();
    assert.equal(emitter.size, 0);
    emitter.fire(3);
    assert.equal(heard.length, 3);
  });

  it("reaches a listener once for each time it was added, and those that others remove meanwhile", () => {
    const emitter = new Emitter<number>(fail);
    const heard: string[] = [];
    const listener = (): unknown => heard.push("listener");
    emitter.event(() => twice.dispose());
    emitter.event(listener);
    const twice = emitter.event(listener);
    emitter.fire(1);
    assert.deepEqual(heard, ["listener", "listener"]);
    emitter.fire(2);
    assert.equal(heard.length, 3);
  });

  it("reaches the others if a listener fails, which is logged with its source", () => {
    const log: unknown[] = [];
    const logger = { error: (message: string, error: unknown) => void log.push([message, error]) };
    const emitter = new Emitter<number>(logged(logger, "the weather"));
    const error = new Error("Wet.");
    let heard = 0;
    emitter.event(() => {
      throw error;
    });
    emitter.event((value) => (heard = value));
    emitter.fire(7);
    assert.equal(heard, 7);
    assert.deepEqual(log, [["A listener to the weather failed.", error]]);
  });
});

describe("A promise that can be cancelled", () => {
  const never = new Promise<string>(() => undefined);
  const reason = (): Error => new Error("Cancelled.");

  it("has its own outcome, with or without a signal", async () => {
    const { signal } = new AbortController();
    for (const given of [undefined, signal]) {
      assert.equal(await unlessCancelled(Promise.resolve("done"), given, reason), "done");
      await assert.rejects(unlessCancelled(Promise.reject(new Error("Failed.")), given, reason), /Failed/);
    }
  });

  it("is rejected as soon as the signal is aborted, also if it was before", async () => {
    const controller = new AbortController();
    const waiting = unlessCancelled(never, controller.signal, reason);
    let isRejected = false;
    waiting.catch(() => (isRejected = true));
    await settled();
    assert.ok(!isRejected);
    controller.abort();
    await assert.rejects(waiting, /Cancelled/);
    await assert.rejects(unlessCancelled(never, controller.signal, reason), /Cancelled/);
  });

  it("leaves no listener on the signal", async () => {
    const { signal } = new AbortController();
    const listeners: string[] = [];
    signal.addEventListener = (type: string) => void listeners.push(type);
    signal.removeEventListener = (type: string) => void listeners.splice(listeners.indexOf(type), 1);
    const waiting = unlessCancelled(Promise.resolve(1), signal, reason);
    assert.deepEqual(listeners, ["abort"]);
    await waiting;
    assert.deepEqual(listeners, []);
  });
});
