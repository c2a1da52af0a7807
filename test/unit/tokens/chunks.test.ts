import assert from "node:assert/strict";
import fc from "fast-check";
import { batchesOf } from "../../../src/tokens/chunks.ts";
import type { Chunk } from "../../../src/tokens/chunks.ts";
import { TextTokens } from "../../../src/tokens/text-tokens.ts";
import { loadVocabulary } from "../../../src/tokens/vocabulary.ts";
import { letters, ordinary } from "./samples.ts";

const LONGEST_SLAB = 65_536;
const LONGEST_BATCH = 2 * LONGEST_SLAB;

describe("texts in batches of chunks", () => {
  let tokens: TextTokens;

  before(() => void (tokens = new TextTokens(loadVocabulary())));

  const chunksOf = (...texts: string[]): Chunk[] => [...batchesOf(texts)].flat();
  const sum = (chunks: readonly Chunk[]): number =>
    chunks.reduce((total, { text, extra }) => total + tokens.count(text) + extra, 0);

  it("add up to the texts, and each chunk names its text", () => {
    const texts = ["short", "", letters(200_000), "你好".repeat(50_000), " "];
    const joined = texts.map(() => "");
    for (const { owner, text } of chunksOf(...texts)) joined[owner] += text;
    assert.deepEqual(joined, texts);
  });

  it("are limited in size, for few long texts as well as many short ones", () => {
    const batches = [...batchesOf([letters(500_000), ...Array.from({ length: 10_000 }, () => "x")])];
    for (const batch of batches) {
      for (const { text } of batch) assert.ok(text.length > 0 && text.length <= LONGEST_SLAB);
      assert.ok(batch.length <= 4_000, `${batch.length} chunks`);
      assert.ok(batch.reduce((length, { text }) => length + text.length, 0) <= LONGEST_BATCH);
    }
    assert.ok(batches.length < 20, `${batches.length} batches`);
  });

  it("are made on demand, one batch at a time", () => {
    const asked: number[] = [];
    const texts = Array.from({ length: 20 }, () => letters(40_000));
    const watched = new Proxy(texts, {
      get(target, key, receiver) {
        if (typeof key === "string" && /^\d+$/.test(key)) asked.push(Number(key));
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    batchesOf(watched).next();
    assert.ok(asked.length > 0 && asked.length < 5, `texts asked for: ${asked.join(", ")}`);
  });

  it("are none for empty texts", () => assert.deepEqual([...batchesOf(["", ""])], []));

  for (const [name, text] of Object.entries(ordinary))
    it(`do not change the count of ${name}`, () => {
      const long = text.repeat(Math.ceil(200_000 / text.length));
      const chunks = chunksOf(long);
      assert.ok(chunks.length > 3);
      assert.equal(sum(chunks), tokens.count(long));
    });

  it("do not change the count of any mix of words, numbers and marks", () => {
    const start = "word ".repeat(13_050);
    const unit = fc.constantFrom(
      ...[
        " don't",
        " it's",
        "'",
        "'s",
        "’",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "/",
        "//",
        ".",
        "…",
        "-",
        "。",
        "\u0301",
        "ก็",
        "ั",
      ],
      ...["a", "Ab", "ÉÉ", "é", "你好", "ʰ", "1", "234", "٣", "½", "😀", "𝒜", "\ud835", "\udc9c"],
    );
    const around = fc.array(unit, { minLength: 250, maxLength: 400, size: "max" });
    fc.assert(
      fc.property(around, (units) => {
        const text = `${start}${units.join("")}${" end".repeat(100)}`;
        const chunks = chunksOf(text);
        assert.equal(chunks.length, 2);
        assert.equal(sum(chunks), tokens.count(text));
      }),
      { numRuns: 150 },
    );
  });

  it("add a few tokens for a run without a place to split, and never lose any", () => {
    const runs = [
      letters(150_000),
      " ".repeat(150_000),
      "你好世界".repeat(40_000),
      "-=".repeat(80_000),
      "7".repeat(150_001),
    ];
    for (const run of runs) {
      const over = sum(chunksOf(run)) - tokens.count(run);
      assert.ok(over > 0 && over <= 20, `${run.slice(0, 10)}…: ${over} more`);
    }
  });

  it("do not split surrogate pairs", () => {
    for (const start of ["", "-"])
      for (const { text } of chunksOf(start + "😀".repeat(100_000)))
        assert.equal(Buffer.from(text).toString(), text);
  });
});
