import assert from "node:assert/strict";

import { plainTerminalText, styledTerminalText } from "../../../src/protocol/terminal-text.ts";

const ESC = "\u001b";

describe("terminal text", () => {
  it("turns colors and styles into classes", () => {
    assert.deepEqual(styledTerminalText(`a${ESC}[1;31mb${ESC}[22mc${ESC}[0md${ESC}[97;44me${ESC}[39;49mf`), [
      { text: "a", classes: [] },
      { text: "b", classes: ["ansi-bold", "ansi-red"] },
      { text: "c", classes: ["ansi-red"] },
      { text: "d", classes: [] },
      { text: "e", classes: ["ansi-bright-white", "ansi-on-blue"] },
      { text: "f", classes: [] },
    ]);
  });

  it("skips the parameters of extended colors", () => {
    assert.deepEqual(styledTerminalText(`${ESC}[38;5;31ma${ESC}[48;2;1;4;31mb${ESC}[m`), [
      { text: "a", classes: [] },
      { text: "b", classes: [] },
    ]);
  });

  it("removes every other control sequence", () => {
    const noise = `${ESC}[2K${ESC}[1;2H${ESC}]0;title\u0007${ESC}]8;;http://x.test${ESC}\\link${ESC}]8;;${ESC}\\${ESC}(B${ESC}=\u0008\u009b`;
    assert.equal(plainTerminalText(`a${noise}b\tc\n`), "alinkb\tc\n");
  });

  it("shows an overwritten line in its last state", () => {
    assert.equal(plainTerminalText("10%\r50%\r100%\nnext\r\nlast\r"), "100%\nnext\nlast");
    assert.equal(plainTerminalText("50%\rlast\r\r"), "last");
  });
});
