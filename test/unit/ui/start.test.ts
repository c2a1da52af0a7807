import assert from "node:assert/strict";
import type * as Arrangement from "../../../src/ui/tree/arrangement.ts";
import { Formatter } from "../../../src/protocol/format.ts";

describe("what a window loads at the start", () => {
  /** The number of objects of `Intl` that an action creates. The first ones of a process take tens of milliseconds. */
  async function created(action: () => unknown): Promise<number> {
    const { Collator, NumberFormat } = Intl;
    let count = 0;
    const counted = <T extends object>(type: T): T =>
      new Proxy(type, {
        construct: (target, args, newTarget) => {
          count++;
          return Reflect.construct(target as never, args, newTarget) as object;
        },
      });
    Object.assign(Intl, { Collator: counted(Collator), NumberFormat: counted(NumberFormat) });
    try {
      await action();
    } finally {
      Object.assign(Intl, { Collator, NumberFormat });
    }
    return count;
  }

  it("prepares the formatting of numbers only when a number is shown", async () => {
    let format: Formatter | undefined;
    assert.equal(await created(() => (format = new Formatter("en"))), 0);
    assert.ok((await created(() => format?.amount(1))) > 0);
  });

  it("prepares the comparison of names only when rows are sorted by name", async () => {
    // The query makes it another module than the one that other tests may have loaded.
    const module = "../../../src/ui/tree/arrangement.ts?start";
    let arrangement: typeof Arrangement | undefined;
    assert.equal(await created(async () => (arrangement = (await import(module)) as typeof Arrangement)), 0);
    const child = { id: "a", createdAt: 0, description: "a" } as Parameters<
      typeof Arrangement.compareChildren
    >[0];
    assert.ok((await created(() => arrangement?.compareChildren(child, child, "name"))) > 0);
  });
});
