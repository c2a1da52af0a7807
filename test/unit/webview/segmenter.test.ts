import assert from "node:assert/strict";

import fc from "fast-check";

import { Segmenter } from "../../../src/webview/segmenter.ts";

function segments(...pieces: string[]): string[] {
  const segmenter = new Segmenter();
  for (const piece of pieces) segmenter.append(piece);
  return Array.from({ length: segmenter.count }, (_, index) => segmenter.segment(index));
}

const paragraph = `${"word ".repeat(300).trim()}\n\n`;

describe("Segmenter", () => {
  it("keeps short text in one segment", () => {
    assert.deepEqual(segments("# Title\n\nText\n\nMore"), ["# Title\n\nText\n\nMore"]);
  });

  it("ends segments between blocks", () => {
    assert.deepEqual(segments(paragraph + paragraph + "end\n"), [paragraph, paragraph, "end\n"]);
  });

  it("keeps lists, items with several paragraphs and fenced code together", () => {
    const list = `- ${"a".repeat(1_300)}\n\n- b\n\n  still b\n\n1. c\n`;
    const code = `\`\`\`js\n${"x\n\ny\n\n".repeat(400)}\`\`\`\n`;
    assert.deepEqual(segments(list), [list]);
    assert.deepEqual(segments(code), [code]);
  });

  it("recognizes a shorter fence, another kind of fence and backticks within a line as no end or beginning of code", () => {
    const code = `~~~~\n${"text\n\n".repeat(300)}~~~\n\n\`\`\`\n\ntext\n~~~~\n`;
    assert.deepEqual(segments(code), [code]);
    assert.equal(segments(`\`\`\`inline\`\`\` ${"a".repeat(1_300)}\n\nnext\n`).length, 2);
  });

  it("knows where code ends that contains indented fences, and code that a list item begins with", () => {
    const nested = `\`\`\`py\ndef f():\n    \`\`\`\n    x\n${"a = 1\n\n".repeat(400)}\`\`\`\n`;
    assert.deepEqual(segments(nested), [nested]);
    for (const marker of ["-", "12.", "- *"]) {
      const item = `${marker} \`\`\`js\n${" ".repeat(marker.length + 1)}a = 1;\n  \`\`\`\n\n`;
      assert.deepEqual(segments(`${item}${paragraph}${paragraph}end\n`), [
        item + paragraph,
        paragraph,
        "end\n",
      ]);
    }
  });

  it("splits very long code between lines, with each part still code", () => {
    const [first = "", second = "", ...others] = segments(
      `\`\`\`ts\n${"const a = 1;\n".repeat(3_000)}\`\`\`\n`,
    );
    assert.deepEqual(others, []);
    assert.match(first, /^```ts\nconst a = 1;\n[^`]*```\n$/);
    assert.match(second, /^```ts\nconst a = 1;\n[^`]*```\n$/);
    assert.equal((first + second).match(/const a = 1;/g)?.length, 3_000);
  });

  it("repeats the head of a very long table where that is split", () => {
    const head = "| Name | Size |\n|:-----|-----:|\n";
    const rows = Array.from({ length: 700 }, (_, index) => `| file ${index} | ${index * 7} |\n`);
    const parts = segments(`Sizes:\n${head}${rows.join("")}\nEnd | of it\n`);
    assert.deepEqual(parts.slice(2), ["End | of it\n"]);
    assert.ok(parts[0]?.startsWith(`Sizes:\n${head}| file 0 |`));
    assert.match(parts[1] ?? "", /^\| Name \| Size \|\n\|:-----\|-----:\|\n\| file \d+ \| \d+ \|\n/);
    assert.equal(
      parts.join("").replace(head, "").replace(head, ""),
      `Sizes:\n${rows.join("")}\nEnd | of it\n`,
    );
  });

  it("repeats it at each split, and nowhere else", () => {
    const head = "|Name|Size|\n|-|-|\n";
    const rows = "|a|1|\n".repeat(5_000);
    const parts = segments(head + rows);
    assert.ok(parts.length > 2);
    for (const part of parts) assert.ok(part.startsWith(`${head}|a|1|`), part.slice(0, 40));
    assert.equal(parts.join("").replaceAll(head, ""), rows);
    const table = head + "|a|1|\n".repeat(300);
    for (const blank of ["\n", " \n", "\r\n"])
      assert.deepEqual(segments(`${table}${blank}Use \`a | b\`.\n`), [table + blank, "Use `a | b`.\n"]);
  });

  it("splits a very long list before an item that isn't nested, as far as there is one", () => {
    const item = (length: number): string => `- item\n${"    - nested\n".repeat(length)}`;
    assert.deepEqual(segments(item(700) + item(10)), [item(700), item(10)]);
    const parts = segments(item(3_000));
    assert.equal(parts.join(""), item(3_000));
    assert.ok(parts.length > 1 && parts.every(({ length }) => length < 17_000));
  });

  it("splits an endless line, but not within a character", () => {
    const parts = segments("x" + "😀".repeat(30_000));
    assert.ok(parts.length > 3);
    assert.equal(parts.join(""), "x" + "😀".repeat(30_000));
    for (const part of parts) assert.doesNotMatch(part, /\p{Surrogate}/u);
  });

  it("gives a segment the addresses of its links that another segment defines, also before the text is complete", () => {
    const first = `See [the docs][1], [Guide] and [other][2]. ${paragraph}`;
    const second = `${paragraph}`;
    const links = "[1]: https://a.test/docs 'Docs'\n [guide]: <docs/guide.md>\n";
    assert.deepEqual(segments(first + second + links), [
      `${first}\n\n[1]: https://a.test/docs 'Docs'\n [guide]: <docs/guide.md>`,
      second,
      links,
    ]);
    const last = "[2]: https://b.test";
    assert.ok(segments(first, second + links + last)[0]?.endsWith(`guide.md>\n${last}`));
    assert.equal(segments(first, second, links, "[2]: javascript:b")[0]?.includes("javascript"), false);
    assert.deepEqual(segments(links, paragraph, first), [
      links + paragraph,
      `${first}\n\n${links.trimEnd()}`,
    ]);
  });

  it("takes nothing in code for an address, and adds none to code", () => {
    const code = `\`\`\`\n${"x[1]\n".repeat(300)}[1]: https://a.test\n`;
    assert.deepEqual(segments(`[a][1] ${paragraph}${code}`), [`[a][1] ${paragraph}`, code]);
    assert.deepEqual(segments(`[1]: https://a.test\n\n${paragraph}\`\`\`\nx[1]\n`).at(-1), "```\nx[1]\n");
  });

  it("gives the same segments however the text is divided on arrival", () => {
    const block = fc.constantFrom(
      paragraph,
      "- item\n",
      "```\n",
      "code\n\n",
      "\n",
      "    indented\n",
      "~~~\n",
      "text",
      "[a][1]",
      "[1]: https://a.test",
    );
    fc.assert(
      fc.property(
        fc.array(block, { maxLength: 30 }),
        fc.array(fc.integer({ min: 1, max: 700 })),
        (blocks, sizes) => {
          const text = blocks.join("");
          const pieces: string[] = [];
          let at = 0;
          for (const size of sizes) pieces.push(text.slice(at, (at += size)));
          assert.deepEqual(segments(...pieces, text.slice(at)), segments(text));
        },
      ),
    );
  });
});
