import assert from "node:assert/strict";
import { Refusal } from "../../../src/engine/errors.ts";
import { NO_ISOLATION } from "../../../src/engine/settings.ts";
import { folderSettings, openFolder, parse, parseCall } from "../../../src/rpc/arguments.ts";
import { isRepeatable, methodNames, putSignal, takeSignal } from "../../../src/rpc/methods.ts";
import { folder, settings } from "./fake-host.ts";

/** The arguments as they arrive. */
const sent = (args: readonly unknown[]): unknown => JSON.parse(JSON.stringify(args));

function refuses(method: string, args: readonly unknown[], message: RegExp): void {
  assert.throws(
    () => parseCall(method, sent(args)),
    (error: unknown) => {
      assert.ok(error instanceof Refusal);
      assert.match(error.message, message);
      return true;
    },
  );
}

describe("Arguments of calls", () => {
  it("keep their places, with omitted ones as undefined", () => {
    assert.deepEqual(parseCall("clearBatch", sent(["bat_1", undefined, undefined, "agent"])).args, [
      "bat_1",
      undefined,
      undefined,
      "agent",
    ]);
    assert.deepEqual(parseCall("cancel", sent(["ses_1"])).args, ["ses_1", undefined]);
    assert.deepEqual(parseCall("models", sent([])).args, []);
  });

  it("are refused if invalid, with a sentence that names the call", () => {
    refuses("cancel", [3], /^Invalid arguments for cancel:/);
    refuses("cancel", ["ses_1", "nobody"], /cancel/);
    refuses("retry", [], /retry/);
    refuses("clear", ["ses_1", { cancelRunning: true, more: 1 }], /at \[1\]/);
    refuses("launch", [{ prompt: "Do it.", parentSessionID: "ses_1" }], /launchedBy/);
  });

  it("are refused for an unknown method", () => {
    refuses("explode", [], /doesn't know the command explode\. Reload this window/);
    refuses("toString", [], /toString/);
  });

  it("can include an infinite time, which JSON cannot represent", () => {
    assert.deepEqual(parseCall("output", sent(["ses_1", { timeout: Infinity }])).args, [
      "ses_1",
      { timeout: Infinity },
    ]);
  });

  it("are defined for every method", () => {
    for (const method of methodNames)
      try {
        parseCall(method, []);
      } catch (error) {
        assert.match((error as Error).message, /Invalid arguments/);
      }
  });

  it("can be a folder's settings as a window sends them; unusable records are dropped, incomplete settings refused", () => {
    assert.deepEqual(parse("open", openFolder, JSON.parse(JSON.stringify(folder()))), folder());
    const unusable = { ...folder(), kept: { tombstones: "none", unsettled: [3] } };
    assert.equal(parse("open", openFolder, unusable).kept, undefined);
    assert.throws(() => parse("configure", folderSettings, { ...settings, watched: undefined }), Refusal);
  });

  it("can be a folder whose settings have limits of the wrong type, which the engine refuses where they are used", () => {
    const { engine } = settings;
    const mistyped = { ...engine, fork: { ...engine.fork, maxTokens: "100000", maxToolResultChars: null } };
    const opened = parse("open", openFolder, { ...folder(), settings: { ...settings, engine: mistyped } });
    assert.deepEqual(opened.settings.engine.fork, mistyped.fork);
  });

  it("can be a folder as an earlier version handed it over, without `collisions` and `isolation`", () => {
    const { settings } = parse("open", openFolder, JSON.parse(HANDED_OVER));
    assert.equal(settings.engine.collisions, "block");
    assert.deepEqual(settings.engine.isolation, NO_ISOLATION);
    assert.deepEqual(
      { ...settings.engine, collisions: undefined, isolation: undefined },
      {
        ...JSON.parse(HANDED_OVER).settings.engine,
        collisions: undefined,
        isolation: undefined,
      },
    );
    const stored = JSON.stringify(JSON.parse(HANDED_OVER).settings);
    assert.deepEqual(parse("configure", folderSettings, JSON.parse(stored)), settings);
  });
});

describe("The signal of a caller", () => {
  const { signal } = new AbortController();

  for (const [method, args, travelling] of [
    ["connect", [signal], []],
    ["previewFork", [{ sourceSessionID: "ses_1" }, signal], [{ sourceSessionID: "ses_1" }]],
    ["output", ["ses_1", { block: true, signal }], ["ses_1", { block: true }]],
  ] as const)
    it(`is left out when ${method} is sent, and is in its place again on arrival`, () => {
      const taken = takeSignal(method, args);
      assert.deepEqual(taken.args, travelling);
      assert.equal(taken.signal, signal);
      assert.deepEqual(putSignal(method, parseCall(method, sent(taken.args)).args, signal), args);
    });

  it("is optional", () => {
    assert.deepEqual(takeSignal("output", ["ses_1"]).args, ["ses_1"]);
    assert.deepEqual(putSignal("output", parseCall("output", ["ses_1"]).args, signal), ["ses_1", { signal }]);
    assert.deepEqual(takeSignal("connect", []), {
      args: [],
      signal: undefined,
      cancelled: takeSignal("connect", [signal]).cancelled,
    });
  });
});

describe("A call whose daemon is gone", () => {
  it("is repeated if the engine knows it by its ID, or if it changes nothing", () => {
    assert.ok(isRepeatable("launch", [{ callID: "call_1" }]));
    assert.ok(!isRepeatable("launch", [{}]));
    assert.ok(isRepeatable("resume", ["ses_1", "Go on.", { sessionID: "ses_0", callID: "call_1" }]));
    assert.ok(!isRepeatable("resume", ["ses_1", "Go on."]));
    assert.ok(isRepeatable("agents", []));
    assert.ok(!isRepeatable("retry", ["ses_1"]));
    assert.ok(!isRepeatable("steer", ["ses_1", "More."]));
    assert.ok(isRepeatable("steer", ["ses_1", "More.", { call: { sessionID: "ses_2", callID: "c" } }]));
  });
});

/** As an earlier version wrote it. Must not change when settings are added: these must have defaults. */
const HANDED_OVER =
  '{"directory":"/work","settings":{"engine":{"pollInterval":5000,"stallWarning":120000,"defaultAgent":"general","maxConcurrentTasks":5,"maxDepth":1,"fork":{"maxToolResultChars":1500,"maxTokens":100000,"strategy":"auto"},"notifyParent":true,"budget":{"taskCost":null}},"server":{"startTimeoutMs":120000},"agentTools":true,"keepWorkingMs":43200000,"watched":false},"env":{"PATH":"/usr/bin"}}';
