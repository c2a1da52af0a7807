import assert from "node:assert/strict";
import { AnsweringWire } from "../../../src/rpc/answering-wire.ts";
import { DaemonLink } from "../../../src/rpc/daemon-link.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { until } from "../../support/wait.ts";
import { socketPair } from "./socket-pair.ts";

describe("A link to the daemon", () => {
  const held: { dispose(): void }[] = [];
  afterEach(() => {
    for (const each of held.splice(0)) each.dispose();
  });

  /** A link that is followed, and the pings that arrive at the other end. */
  async function followed(answer: () => Promise<void>) {
    const pair = await socketPair();
    held.push(pair);
    const pings: unknown[] = [];
    new AnsweringWire(
      pair.far,
      () => undefined,
      async (method, params) => {
        pings.push([method, params]);
        await answer();
        return undefined;
      },
    );
    const link = new DaemonLink(pair.near, () => undefined);
    const clock = new ManualClock();
    const told: boolean[] = [];
    link.follow(1, clock, (isSilent) => told.push(isSilent));
    return { link, clock, pings, told };
  }

  it("asks the daemon every 2.5 seconds whether it is there", async () => {
    const { clock, pings, told } = await followed(async () => undefined);
    await clock.advance(2_499);
    assert.deepEqual(pings, []);
    await clock.advance(1);
    await until("the answer", () => told.length === 1);
    assert.deepEqual([pings, told], [[["ping", {}]], [false]]);
    await clock.advance(2_500);
    await until("the second answer", () => told.length === 2);
    assert.deepEqual(told, [false, false]);
  });

  it("is silent after 7.5 seconds without an answer, until there is one", async () => {
    let reply = (): void => undefined;
    const { clock, pings, told } = await followed(() => new Promise((resolve) => (reply = resolve)));
    await clock.advance(2_500);
    await until("the question", () => pings.length === 1);
    await clock.advance(7_499);
    assert.deepEqual(told, []);
    await clock.advance(1);
    assert.deepEqual(told, [true]);
    reply();
    await until("the answer", () => told.length === 2);
    assert.deepEqual(told, [true, false]);
  });

  it("asks nothing more once it is closed", async () => {
    const { link, clock, told } = await followed(async () => undefined);
    link.close();
    await link.closed;
    assert.equal(clock.pending, 0);
    await clock.advance(20_000);
    assert.deepEqual(told, []);
  });

  it("isn't called silent if it is closed before the answer", async () => {
    const { link, clock, pings, told } = await followed(() => new Promise(() => undefined));
    await clock.advance(2_500);
    await until("the question", () => pings.length === 1);
    link.close();
    await link.closed;
    await clock.advance(20_000);
    assert.deepEqual([told, clock.pending], [[], 0]);
  });
});
