import assert from "node:assert/strict";
import { missing, surplus, translations } from "../l10n/texts.ts";

describe("the translations", () => {
  const all = translations();

  it("exist for Simplified Chinese", () => {
    assert.deepEqual(
      all.map(({ file }) => file.replaceAll("\\", "/")),
      ["l10n/bundle.l10n.zh-cn.json", "package.nls.zh-cn.json"],
    );
  });

  for (const translation of all) {
    const { file, english, translated } = translation;
    const pairs = Object.entries(english).map(([key, text]) => [text, translated[key] ?? ""] as const);

    describe(file, () => {
      it("has every text of the product, and no other (npm run l10n)", () => {
        assert.deepEqual({ missing: missing(translation), surplus: surplus(translation) }, NOTHING);
      });

      it("keeps every value, link, icon and code name in its translation", () => {
        assert.ok(pairs.length > 0);
        for (const [text, translation] of pairs) assert.deepEqual(parts(translation), parts(text), text);
      });
    });
  }
});

const NOTHING = { missing: [], surplus: [] };

/** What is the same in every language: `{0}`, `$(icon)`, the link of `[words](link)`, and text in back quotes. */
function parts(text: string): readonly string[] {
  return [...text.matchAll(/\{\d+\}|\$\([\w~-]+\)|\]\([^)]+\)|`[^`]+`/g)].map(([part]) => part).sort();
}
