import assert from "node:assert/strict";
import { homedir } from "node:os";
import { readOptions } from "../../../src/plugin/options.ts";
import { defaultStateFolder } from "../../../src/state/private-files.ts";

describe("The plugin's options", () => {
  const defaults = {
    stateFolder: defaultStateFolder({ platform: process.platform, env: process.env, home: homedir() }),
    patience: { untakenMs: 10_000, takenMs: 60_000 },
    subagentDepth: undefined,
  };

  it("can all be left out", () => {
    for (const nothing of [undefined, null, {}]) assert.deepEqual(readOptions(nothing), defaults);
  });

  it("say where endpoints are found, how long they are looked for, and how deep subagents may go", () => {
    assert.deepEqual(
      readOptions({ stateFolder: "/state", patienceMs: 1, reloadPatienceMs: 2, subagentDepth: 3 }),
      { stateFolder: "/state", patience: { untakenMs: 1, takenMs: 2 }, subagentDepth: 3 },
    );
  });

  it("count as left out where they do not fit, and only those", () => {
    for (const odd of ["/state", [], 7]) assert.deepEqual(readOptions(odd), defaults);
    assert.deepEqual(
      readOptions({ stateFolder: "/state", patienceMs: "soon", subagentDepth: "2", more: true }),
      {
        ...defaults,
        stateFolder: "/state",
      },
    );
    assert.deepEqual(readOptions({ stateFolder: 7, patienceMs: 1 }), {
      ...defaults,
      patience: { ...defaults.patience, untakenMs: 1 },
    });
  });
});
