import assert from "node:assert/strict";
import { describeFailure } from "../../../src/engine/connection.ts";
import { countMatches, findExpression } from "../../../src/engine/find-text.ts";
import { MultiMap } from "../../../src/engine/multi-map.ts";
import { title, visible, withoutHidden } from "../../../src/engine/plain-text.ts";
import { english } from "../../../src/engine/sentence.ts";

describe("Text that others wrote", () => {
  // A right-to-left override, an escape, a zero-width joiner.
  const text = "a\u202Eb\u001Bc\u200Dd";

  it("shows its hidden characters where users decide by it", () => {
    assert.equal(visible(text), "a\\u{202e}b\\u{1b}c\\u{200d}d");
    assert.equal(visible("two\r\nlines\n\tand a tab"), "two\r\nlines\n\tand a tab");
    assert.equal(visible("over\rwritten"), "over\\u{d}written");
  });

  it("has no hidden characters in rows and titles, except those that join letters", () => {
    assert.equal(withoutHidden(text), "abc\u200Dd");
    assert.equal(title(`  ${text}\n\n  more\r\ntext `), "abc\u200Dd more text");
  });
});

describe("Finding text", () => {
  const count = (query: string, text: string): number => {
    const expression = findExpression(query);
    assert.ok(expression);
    return countMatches(text, expression);
  };

  it("ignores case, and treats all white space alike", () => {
    assert.equal(count("ÄPFEL and", "äpfel  AND Äpfel\nand äpfeland"), 2);
    assert.equal(count("  a \n  b ", "a b a\t\nb ab"), 2);
    assert.equal(count("x", "y"), 0);
  });

  it("takes every other character as it is", () => {
    for (const special of [".", "*", "+", "?", "^", "$", "{", "}", "(", ")", "|", "[", "]", "\\", "/"])
      assert.equal(count(`a${special}`, `a${special} ab a`), 1, special);
  });

  it("has nothing to find in white space", () => {
    for (const query of ["", " \n\t"]) assert.equal(findExpression(query), undefined);
  });
});

describe("A map with several values per key", () => {
  it("has each value once, in their order, until it is deleted", () => {
    const map = new MultiMap<string, number>();
    assert.deepEqual([...map.of("a")], []);
    map.delete("a", 1);
    for (const value of [2, 1, 2]) map.add("a", value);
    map.add("b", 3);
    assert.deepEqual([...map.of("a")], [2, 1]);
    map.delete("a", 2);
    map.delete("a", 1);
    assert.deepEqual([...map.of("a")], []);
    assert.deepEqual([...map.of("b")], [3]);
    map.add("a", 4);
    assert.deepEqual([...map.of("a")], [4]);
  });
});

describe("A failed connection", () => {
  it("is described with its remedy", () => {
    const failure = { code: "not-found", message: "OpenCode wasn't found.", remedy: "Install it." } as const;
    assert.equal(english(describeFailure(failure)), "OpenCode wasn't found. Install it.");
  });
});
