import assert from "node:assert/strict";
import { homedir } from "node:os";
import { readOptions } from "../../../src/plugin/options.ts";
import { defaultStateFolder } from "../../../src/state/state-folder.ts";

describe("The plugin's options", () => {
  const defaults = {
    stateFolder: defaultStateFolder({ platform: process.platform, env: process.env, home: homedir() }),
    patience: { untakenMs: 10_000, takenMs: 60_000 },
    writePatienceMs: 200,
    subagentDepth: undefined,
    tools: undefined,
    graceMs: undefined,
  };

  it("can all be omitted", () => {
    for (const nothing of [undefined, null, {}]) assert.deepEqual(readOptions(nothing), defaults);
  });

  it("set the state folder, the patience of calls and writes, and the options of a server that the extension starts", () => {
    const ofServer = { subagentDepth: 3, tools: false, graceMs: 60_000 };
    assert.deepEqual(
      readOptions({
        stateFolder: "/state",
        patienceMs: 1,
        reloadPatienceMs: 2,
        writePatienceMs: 3,
        ...ofServer,
      }),
      {
        stateFolder: "/state",
        patience: { untakenMs: 1, takenMs: 2 },
        writePatienceMs: 3,
        ...ofServer,
      },
    );
  });

  it("count as omitted if invalid, but only those", () => {
    for (const odd of ["/state", [], 7]) assert.deepEqual(readOptions(odd), defaults);
    assert.deepEqual(
      readOptions({
        stateFolder: "/state",
        patienceMs: "soon",
        writePatienceMs: "now",
        subagentDepth: "2",
        tools: 1,
        graceMs: "1",
        more: true,
      }),
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
