import assert from "node:assert/strict";
import { countsOf, wantedBy } from "../support/wanted.ts";

describe("the command line of the tests", () => {
  const wanted = (...args: string[]): unknown => wantedBy(args, ["unit", "server", "ui"]);
  const all = { suites: [], files: [], grep: undefined, repeat: 1 };

  it("names suites, files of suites, and a part of the titles", () => {
    assert.deepEqual(wanted(), all);
    assert.deepEqual(wanted("unit", "ui"), { ...all, suites: ["unit", "ui"] });
    const file = "test/unit/git/branch.test.ts";
    assert.deepEqual(wanted("server", file, "-g", "merges"), {
      ...all,
      suites: ["server", "unit"],
      files: [file],
      grep: "merges",
    });
    assert.deepEqual(wanted(`./${file}`), { ...all, suites: ["unit"], files: [`./${file}`] });
  });

  it("says which suites there are", () => {
    assert.throws(() => wanted("units"), /No such suite: units. There are: unit, server, ui./);
    assert.throws(() => wanted("test/bench/run.ts"), /No such suite: bench/);
  });

  it("says how many times", () => {
    assert.deepEqual(wanted("--repeat", "5", "ui"), { ...all, suites: ["ui"], repeat: 5 });
    for (const none of ["0", "-1", "1.5", "x", ""])
      assert.throws(() => wanted(`--repeat=${none}`), /--repeat needs a whole number/);
  });
});

it("failures of several runs are counted by title, the most frequent first", () => {
  assert.deepEqual(countsOf(["ui: a", "ui: b", "ui: b"], 5), ["2 of 5: ui: b", "1 of 5: ui: a"]);
  assert.deepEqual(countsOf([], 5), []);
});
