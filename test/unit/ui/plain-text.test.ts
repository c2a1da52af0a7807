import assert from "node:assert/strict";
import { plainMarkdown, title, visible, withoutIcons, withoutLinks } from "../../../src/ui/plain-text.ts";

describe("text from agents and users", () => {
  it("shows hidden characters as codes, and line breaks unchanged", () => {
    assert.equal(visible("rm \u202e/ \u200bx\u0007\u0085"), "rm \\u{202e}/ \\u{200b}x\\u{7}\\u{85}");
    assert.equal(visible("a\n\tb\r\nc\rd"), "a\n\tb\r\nc\\u{d}d");
    assert.equal(visible("👍🏽 שלום"), "👍🏽 שלום");
  });

  it("has in a title no hidden or bidirectional characters, and is on one line", () => {
    assert.equal(title(" a\u202eb\u2066\n\u0007c\ufeff"), "ab c");
    // Family emoji and Persian words contain invisible joiners and non-joiners.
    for (const text of ["👨‍👩‍👧", "می‌خواهم", "שלום"]) assert.equal(title(text), text);
  });

  it("becomes no link, icon or Markdown, even with hidden characters in between", () => {
    assert.equal(withoutLinks("[Fix it]\u200b(command:x)\u202e\nNext"), "[Fix it] (command:x)\nNext");
    assert.equal(withoutIcons("$\u200b(error)\u202e"), "\\$(error)");
    assert.equal(plainMarkdown("*a*\u202e\n[b](c)"), "\\*a\\* \\[b\\]\\(c\\)");
  });
});
