import assert from "node:assert/strict";

import { Formatter } from "../../../src/protocol/format.ts";
import { L10n } from "../../../src/webview/l10n.ts";

describe("Formatter", () => {
  const format = new Formatter("en");

  it("formats durations with suitable precision", () => {
    const cases: [number, string][] = [
      [-5, "0 ms"],
      [420, "420 ms"],
      [4_240, "4 s"],
      [42_900, "43 s"],
      [185_000, "3 m 5 s"],
      [7_830_000, "2 h 10 m"],
    ];
    for (const [ms, text] of cases) assert.equal(format.duration(ms), text);
  });

  it("formats small amounts of money", () => {
    assert.equal(format.cost(0.0473), "$0.047");
    assert.equal(format.cost(0.00012), "$0.00012");
    assert.equal(format.cost(0.05), "$0.05");
    assert.equal(format.cost(0.0999), "$0.10");
    assert.equal(format.cost(0.5), "$0.50");
    assert.equal(format.cost(12.345), "$12.35");
    assert.equal(format.cost(0), "$0.00");
  });

  it("fills placeholders literally, in the editor's language", () => {
    const l10n = new L10n({ "{0} of {1}": "von {1} {0}" });
    assert.equal(l10n.t("{0}: {1} {2}", "a{1}", "$&"), "a{1}: $& {2}");
    assert.equal(l10n.t("{0} of {1}", "1", "2"), "von 2 1");
  });
});
