import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { Refusal } from "../../../src/engine/errors.ts";
import { ThreadTokenCounter } from "../../../src/tokens/token-counter.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { letters, ordinary } from "./samples.ts";

const IDLE_MS = 60_000;

describe("counting tokens in a thread", () => {
  const opened: ThreadTokenCounter[] = [];
  const started: Worker[] = [];
  const noteStart = (worker: Worker): void => void started.push(worker);
  let clock: ManualClock;

  before(() => process.on("worker", noteStart));
  after(() => process.off("worker", noteStart));
  beforeEach(() => {
    clock = new ManualClock();
    started.length = 0;
  });
  afterEach(() => opened.splice(0).forEach((counter) => counter.dispose()));

  const open = (script: string): ThreadTokenCounter => {
    const counter = new ThreadTokenCounter({ script, clock, idleMs: IDLE_MS });
    opened.push(counter);
    return counter;
  };

  describe("with the real tokenizer", () => {
    let script: string;

    before(async () => {
      script = join(tempDir("tokens"), "tokenizer.cjs");
      const entryPoints = [join(repository, "src", "tokens", "worker.ts")];
      await build({ entryPoints, outfile: script, bundle: true, platform: "node", format: "cjs" });
    });

    it("counts are exact, in the order of the texts", async () => {
      const reference = new Tiktoken(o200k);
      const texts = ["", "hello", ...Object.values(ordinary), "<|endoftext|>", "", "\ud800"];
      const expected = texts.map((text) => reference.encode(text, [], []).length);
      assert.deepEqual(await open(script).count(texts), expected);
    });

    it("a text of many chunks is counted completely", async () => {
      const long = `${ordinary.code}\n`.repeat(40);
      const [whole = 0, part = 0] = await open(script).count([long, `${ordinary.code}\n`]);
      assert.equal(whole, part * 40);
    });

    it("concurrent calls get their own counts", async () => {
      const counter = open(script);
      const calls = Array.from({ length: 8 }, (_, index) =>
        Array.from({ length: index + 1 }, (_, at) => `${"word ".repeat((index + 1) * 3_000 + at)}end`),
      );
      const alone: (readonly number[])[] = [];
      for (const texts of calls) alone.push(await counter.count(texts));
      assert.deepEqual(await Promise.all(calls.map((texts) => counter.count(texts))), alone);
    });
  });

  describe("with a scripted thread", () => {
    let directory: string;
    let script: string;

    /** Counts each character as a token, records its requests in a file, and reacts to two special texts. */
    const worker = `
      const { appendFileSync, existsSync } = require("node:fs");
      const { join } = require("node:path");
      const { parentPort } = require("node:worker_threads");
      parentPort.on("message", ({ id, texts }) => {
        appendFileSync(join(__dirname, "requests"), "r");
        if (texts[0] === "crash") throw new Error("out of paper");
        if (texts[0] === "exit") process.exit(7);
        const answer = () => parentPort.postMessage({ id, counts: texts.map((text) => text.length) });
        const wait = () => (existsSync(join(__dirname, "hold")) ? setTimeout(wait, 5) : answer());
        wait();
      });`;

    beforeEach(() => {
      directory = tempDir("tokens");
      script = join(directory, "worker.cjs");
      writeFileSync(script, worker);
    });

    const requests = (): number => {
      try {
        return readFileSync(join(directory, "requests"), "utf8").length;
      } catch {
        return 0;
      }
    };
    const hold = (): void => writeFileSync(join(directory, "hold"), "");
    const release = (): void => rmSync(join(directory, "hold"));
    const held = async (count: number): Promise<unknown> =>
      until("the thread to hold the requests", () => requests() === count);
    const isCancel = (error: unknown): boolean =>
      error instanceof Refusal && error.code === "cancelled-by-caller";

    it("no thread is started before there is something to count", async () => {
      const counter = open(script);
      assert.deepEqual(await counter.count([]), []);
      assert.deepEqual(await counter.count(["", ""]), [0, 0]);
      assert.equal(started.length, 0);
      assert.deepEqual(await counter.count(["abc"]), [3]);
      assert.equal(started.length, 1);
    });

    it("one thread serves all calls", async () => {
      const counter = open(script);
      await Promise.all([counter.count(["a"]), counter.count(["b"])]);
      await counter.count(["c"]);
      assert.equal(started.length, 1);
    });

    it("a call has one batch in progress at a time, so that calls take turns", async () => {
      hold();
      const counter = open(script);
      const counting = Promise.all([counter.count([letters(500_000)]), counter.count(["short"])]);
      await held(2);
      release();
      const [[long = 0] = [], short] = await counting;
      assert.ok(long > 500_000, "a few more for where the run was cut");
      assert.deepEqual(short, [5]);
      assert.ok(requests() > 4);
    });

    it("a cancel before or during the call rejects at once; other calls continue", async () => {
      hold();
      const counter = open(script);
      await assert.rejects(counter.count(["a"], AbortSignal.abort()), isCancel);
      assert.equal(started.length, 0);
      const cancel = new AbortController();
      const other = counter.count(["other"]);
      const waiting = counter.count([letters(500_000)], cancel.signal);
      await held(2);
      cancel.abort();
      await assert.rejects(waiting, isCancel);
      release();
      assert.deepEqual(await other, [5]);
      assert.deepEqual(await counter.count(["next"]), [4]);
      assert.equal(requests(), 3, "nothing more was counted for the cancelled call");
    });

    it("the listener on a signal is removed after the call", async () => {
      const { signal } = new AbortController();
      const counting = open(script).count(["a"], signal);
      assert.equal(getEventListeners(signal, "abort").length, 1);
      await counting;
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    it("a crash rejects all waiting calls with the reason and what to do, and the next call starts a new thread", async () => {
      for (const [text, reason] of [
        ["crash", "out of paper"],
        ["exit", "ended with code 7"],
      ] as const) {
        const counter = open(script);
        const before = started.length;
        const outcomes = await Promise.allSettled([counter.count([text]), counter.count(["a"])]);
        for (const outcome of outcomes) {
          assert.equal(outcome.status, "rejected");
          assert.match(String(outcome.reason), new RegExp(`tokenizer failed .*${reason}.*Try again`));
        }
        assert.deepEqual(await counter.count(["abc"]), [3]);
        assert.equal(started.length, before + 2);
      }
    });

    it("a missing file rejects with its name, and the counter works once the file exists", async () => {
      rmSync(script);
      const counter = open(script);
      await assert.rejects(
        counter.count(["a"]),
        /tokenizer failed .*worker\.cjs.*install the extension anew/s,
      );
      writeFileSync(script, worker);
      assert.deepEqual(await counter.count(["abc"]), [3]);
    });

    it("an idle thread is ended after a while, and a new one started on demand", async () => {
      const counter = open(script);
      await counter.count(["a"]);
      await clock.advance(IDLE_MS - 1);
      await counter.count(["a"]);
      await clock.advance(IDLE_MS - 1);
      assert.equal(started.length, 1);
      await clock.advance(1);
      await until("the thread to end", () => started[0]?.threadId === -1);
      assert.deepEqual(await counter.count(["abc"]), [3]);
      assert.equal(started.length, 2);
    });

    it("a thread that is counting is not ended, however long it takes", async () => {
      const counter = open(script);
      await counter.count(["first"]);
      hold();
      const counting = counter.count(["second"]);
      await held(2);
      await counter.count([]);
      await clock.advance(10 * IDLE_MS);
      release();
      assert.deepEqual(await counting, [6]);
      assert.equal(started.length, 1);
    });

    it("once disposed, it rejects waiting and new calls, and leaves no timer", async () => {
      hold();
      const counter = open(script);
      const waiting = counter.count(["a"]);
      await held(1);
      counter.dispose();
      await assert.rejects(waiting, /tokenizer failed \(it was stopped\)/);
      await until("the thread to end", () => started[0]?.threadId === -1);
      await assert.rejects(counter.count(["b"]), /shut down/);
      assert.equal(clock.pending, 0);
    });
  });
});
