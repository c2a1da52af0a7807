import assert from "node:assert/strict";
import { SharedReads } from "../../../src/opencode/shared-reads.ts";

/** A read that is answered when the test says so. */
interface Begun {
  answer(value: string): void;
  fail(error: Error): void;
}

describe("shared reads", () => {
  let begun: Begun[];
  const read = (): Promise<string> =>
    new Promise((answer, fail) => {
      begun.push({ answer, fail });
    });
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  beforeEach(() => {
    begun = [];
  });

  it("what is wanted at the same moment is read once", async () => {
    const reads = new SharedReads();
    const answers = Promise.all([reads.run("a", read), reads.run("a", read), reads.run("a", read)]);
    await settled();
    assert.equal(begun.length, 1);
    begun[0]?.answer("one");
    assert.deepEqual(await answers, ["one", "one", "one"]);
  });

  it("what is wanted while it is being read is read again, once for all who wait", async () => {
    const reads = new SharedReads();
    const first = reads.run("a", read);
    await settled();
    const later = [reads.run("a", read), reads.run("a", read)];
    await settled();
    assert.equal(begun.length, 1);
    begun[0]?.answer("old");
    assert.equal(await first, "old");
    await settled();
    assert.equal(begun.length, 2);
    begun[1]?.answer("new");
    assert.deepEqual(await Promise.all(later), ["new", "new"]);
  });

  it("different things are read independently", async () => {
    const reads = new SharedReads();
    const answers = Promise.all([reads.run("a", read), reads.run("b", read)]);
    await settled();
    begun[1]?.answer("b");
    begun[0]?.answer("a");
    assert.deepEqual(await answers, ["a", "b"]);
  });

  it("a failure concerns those who share the read, and not those who wait for the next", async () => {
    const reads = new SharedReads();
    const failing = [reads.run("a", read), reads.run("a", read)];
    await settled();
    const next = reads.run("a", read);
    begun[0]?.fail(new Error("refused"));
    for (const each of failing) await assert.rejects(each, /refused/);
    await settled();
    begun[1]?.answer("there");
    assert.equal(await next, "there");
  });

  it("a read that is never answered does not hold up the next one", async () => {
    const reads = new SharedReads(5);
    void reads.run("a", read);
    await settled();
    let isAnswered = false;
    const next = reads.run("a", () => {
      isAnswered = true;
      return Promise.resolve("there");
    });
    assert.equal(isAnswered, false);
    assert.equal(await next, "there");
  });
});
