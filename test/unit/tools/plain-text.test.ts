import assert from "node:assert/strict";
import fc from "fast-check";
import { cellText, oneLine, tableCell } from "../../../src/tools/plain-text.ts";

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({
    unit: fc.constantFrom(..."|\\`*_[]<>~#\r\n\t\u0000\u001b\u0085\u2028\u202e\u200b\ud83d😀 aß"),
  }),
);

describe("text of unknown origin", () => {
  it("becomes one line without invisible characters", () => {
    assert.equal(oneLine(" a\r\nb\tc\u0000d\u2028e\u0085f ", 80), "a b c d e f");
    assert.equal(oneLine("a\u202eb\u200bc\u{e0041}d\ud83d", 80), "abcd");
    assert.equal(oneLine("👩‍💻 running", 80), "👩‍💻 running");
  });

  it("is shortened between characters, with an ellipsis", () => {
    assert.equal(oneLine("12345", 5), "12345");
    assert.equal(oneLine("123456", 5), "1234…");
    assert.equal(oneLine("123 56", 5), "123…");
    assert.equal(oneLine("😀😀😀", 2), "😀…");
  });

  it("is escaped in a table, so that it shows as written", () => {
    assert.equal(tableCell("a | b", 80), "a \\| b");
    assert.equal(
      tableCell("`code` *b* ~s~ # <i> [l](u) \\|", 80),
      "\\`code\\` \\*b\\* \\~s\\~ \\# \\<i\\> \\[l\\](u) \\\\\\|",
    );
    assert.equal(tableCell("_em_ __b__ snake_case_name", 80), "\\_em\\_ \\_\\_b\\_\\_ snake_case_name");
  });

  it("can be read back from a table, whatever it contains", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const read = cellText(text);
        assert.equal(cellText(tableCell(read, Infinity)), read);
      }),
      { seed: 1, numRuns: 1_000 },
    );
  });

  it("never breaks a table row, whatever it contains", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const cell = tableCell(text, 20);
        assert.doesNotMatch(cell, /[\p{Cc}\p{Cs}\u2028\u2029]/u);
        assert.equal(cell, cell.trim());
        // Apart from escaped characters, the cell contains nothing with a meaning in Markdown.
        assert.doesNotMatch(cell.replace(/\\[^\p{L}\p{N}\s]/gu, ""), /[\\|`*<>[\]~#]/);
        assert.ok([...oneLine(text, 20)].length <= 20);
      }),
      { seed: 1, numRuns: 1_000 },
    );
  });
});
