import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { parse } from "jsonc-parser";
import { Refusal } from "../../../src/engine/errors.ts";
import { PluginConfig } from "../../../src/opencode/plugin-config.ts";
import { addPlugin, namesPlugin, pluginEntry, removePlugin } from "../../../src/opencode/plugin-entry.ts";
import { tempDir } from "../../support/temp.ts";

const STATE = "/home/some one/state";
const ENTRY = pluginEntry(STATE);

const add = (text: string): string => addPlugin({ name: "the file", text }, STATE);
const remove = (text: string): string => removePlugin({ name: "the file", text }, STATE);
const valueOf = (text: string): Record<string, unknown> => parse(text, [], { allowTrailingComma: true });

describe("the plugin's entry in a configuration", () => {
  it("names a file in the state folder, and that folder", () => {
    assert.deepEqual(JSON.parse(ENTRY), [
      "file:///home/some%20one/state/opencode-plugin.js",
      { stateFolder: STATE },
    ]);
  });

  it("is added in the layout of the file", () => {
    const cases: readonly (readonly [before: string, after: string])[] = [
      ["{}", `{\n  "plugin": [${ENTRY}]\n}`],
      ["{\n}\n", `{\n  "plugin": [${ENTRY}]\n}\n`],
      ['{"model": "a/b"}', `{"model": "a/b", "plugin": [${ENTRY}]}`],
      ['{\n\t"model": "a/b"\n}\n', `{\n\t"model": "a/b",\n\t"plugin": [${ENTRY}]\n}\n`],
      ['{\r\n    "a": 1\r\n}\r\n', `{\r\n    "a": 1,\r\n    "plugin": [${ENTRY}]\r\n}\r\n`],
      ['{\n  "a": 1, // one\n}', `{\n  "a": 1, // one\n  "plugin": [${ENTRY}],\n}`],
      ['{\n  "a": 1 // one, two\n}', `{\n  "a": 1, // one, two\n  "plugin": [${ENTRY}]\n}`],
      ['{\n  "a": 1 /* one */ }', `{\n  "a": 1, "plugin": [${ENTRY}] /* one */ }`],
      ['{\n  "a": 1\n  // later\n}', `{\n  "a": 1,\n  "plugin": [${ENTRY}]\n  // later\n}`],
      ["{ // nothing yet\n}", `{\n  "plugin": [${ENTRY}] // nothing yet\n}`],
      ["// mine\n{\n\n}", `// mine\n{\n  "plugin": [${ENTRY}]\n}`],
      ['{ "plugin": [] }', `{ "plugin": [${ENTRY}] }`],
      ['{ "plugin": ["x"] }', `{ "plugin": ["x", ${ENTRY}] }`],
      ['{ "plugin": ["x",] }', `{ "plugin": ["x", ${ENTRY},] }`],
      ['{ "plugin": ["x" // c\n] }', `{ "plugin": ["x", ${ENTRY} // c\n] }`],
      [
        '{\n  "plugin": [\n    "x", // the x, and [more]\n    "y" // the y\n  ]\n}',
        `{\n  "plugin": [\n    "x", // the x, and [more]\n    "y", // the y\n    ${ENTRY}\n  ]\n}`,
      ],
      [
        '{\n  "plugin": [\n    "x",\n    "y",\n  ],\n}',
        `{\n  "plugin": [\n    "x",\n    "y",\n    ${ENTRY},\n  ],\n}`,
      ],
      ['{\n  "plugin": [\n    // none\n  ]\n}', `{\n  "plugin": [${ENTRY}\n    // none\n  ]\n}`],
    ];
    for (const [before, after] of cases) {
      assert.equal(add(before), after);
      assert.equal(add(after), after, "adding it again changes nothing");
    }
  });

  it("is removed without leaving anything of its own", () => {
    const cases: readonly (readonly [before: string, after: string])[] = [
      [`{\n  "plugin": [${ENTRY}]\n}\n`, "{\n}\n"],
      [`{"model": "a/b", "plugin": [${ENTRY}]}`, '{"model": "a/b"}'],
      [`{"plugin": [${ENTRY}], "model": "a/b"}`, '{"model": "a/b"}'],
      [`{ "plugin": [${ENTRY}, "x"] }`, '{ "plugin": ["x"] }'],
      [`{ "plugin": ["x", ${ENTRY}, "y"] }`, '{ "plugin": ["x", "y"] }'],
      [`{ "plugin": ["x" /* c */ , ${ENTRY}] }`, '{ "plugin": ["x" /* c */] }'],
      [`{ "plugin": ["x", /* ours: */ ${ENTRY}] }`, '{ "plugin": ["x" /* ours: */] }'],
      [`{ "plugin": ["x" // c\n , ${ENTRY}] }`, '{ "plugin": ["x" // c\n] }'],
      [`{ "plugin": ["x", // c\n ${ENTRY}] }`, '{ "plugin": ["x" // c\n ] }'],
      [`{ "plugin": [/* ours: */ ${ENTRY}] }`, '{ "plugin": [/* ours: */] }'],
      [
        `{\n  "plugin": [\n    "x", // one\n    ${ENTRY} // two\n    // three\n  ]\n}`,
        '{\n  "plugin": [\n    "x" // one\n    // two\n    // three\n  ]\n}',
      ],
      [`{\n  "plugin": [\n    ${ENTRY},\n    "x"\n  ]\n}`, '{\n  "plugin": [\n    "x"\n  ]\n}'],
      [`{ // a\n  "plugin": [${ENTRY}] // b\n  ,\n  "c": 1\n}`, '{ // a\n   // b\n  \n  "c": 1\n}'],
      ['{ "plugin": ["x"] }', '{ "plugin": ["x"] }'],
      ['{ "plugin": [] }', '{ "plugin": [] }'],
      ["{}", "{}"],
    ];
    for (const [before, after] of cases) assert.equal(remove(before), after);
  });

  it("replaces an older or duplicate entry", () => {
    const older = `["file:///editor/extensions/aa-0.1.0/dist/opencode-plugin.js", { "stateFolder": "${STATE}" }]`;
    const bare = `"${STATE}/opencode-plugin.js"`;
    assert.equal(add(`{ "plugin": [${older}, "x"] }`), `{ "plugin": [${ENTRY}, "x"] }`);
    const spaced = ENTRY.replace(", ", " , ");
    assert.equal(add(`{ "plugin": [${spaced}] }`), `{ "plugin": [${spaced}] }`);
    assert.equal(add(`{ "plugin": ["x", ${bare}, ${older}] }`), `{ "plugin": ["x", ${ENTRY}] }`);
    assert.equal(remove(`{ "plugin": ["x", ${bare}, "y", ${older}] }`), '{ "plugin": ["x", "y"] }');
  });

  it("is distinguished from those of others", () => {
    const others = [
      '"opencode-plugin.js"',
      '"file:///elsewhere/opencode-plugin.js"',
      '["file:///elsewhere/opencode-plugin.js", { "stateFolder": "/other" }]',
      `["other-package", { "stateFolder": "${STATE}" }]`,
      '["file:///elsewhere/opencode-plugin.js", null]',
      "7",
      "null",
      "[]",
      '{ "0": "x" }',
    ];
    const text = `{ "plugin": [${others.join(", ")}] }`;
    assert.equal(namesPlugin({ name: "the file", text }, STATE), false);
    assert.equal(remove(add(text)), text);
  });

  it("leaves an unusable configuration alone, and says why", () => {
    const cases: readonly (readonly [text: string, message: RegExp])[] = [
      ["", /^the file isn't valid JSON/],
      ['{ "a": 1 ', /isn't valid JSON/],
      ['{\n  "a": 1,\n  oops\n}', /line 3/],
      ['{ "a": "unfinished }', /isn't valid JSON/],
      ["/* unfinished", /isn't valid JSON/],
      ["[]", /isn't a JSON object/],
      ["null", /isn't a JSON object/],
      ['"text"', /isn't a JSON object/],
      ['{ "plugin": "x" }', /"plugin" in .* isn't a list/],
      ['{ "plugin": { "0": "x" } }', /"plugin" in .* isn't a list/],
      ['{ "plugin": null }', /"plugin" in .* isn't a list/],
    ];
    for (const [text, message] of cases)
      for (const change of [add, remove])
        assert.throws(
          () => change(text),
          (error) =>
            error instanceof Refusal && message.test(error.message) && /Nothing was/.test(error.message),
          text,
        );
  });

  it("is added to the list that takes effect if there are two", () => {
    const text = '{ "plugin": ["x"], "plugin": ["y"] }';
    assert.deepEqual(valueOf(add(text)).plugin, ["y", JSON.parse(ENTRY)]);
    assert.equal(remove(add(text)), text);
  });

  it("is added to and removed from any configuration without changing the rest", () => {
    fc.assert(
      fc.property(configurations, (text) => {
        const before = valueOf(text);
        const added = add(text);
        const { plugin, ...rest } = valueOf(added);
        const { plugin: others = [], ...restBefore } = before;
        assert.deepEqual(rest, restBefore);
        assert.deepEqual(plugin, [...(others as readonly unknown[]), JSON.parse(ENTRY)]);
        assert.equal(add(added), added);
        const removed = remove(added);
        assert.deepEqual(comments(removed), comments(text));
        // A list without other entries is removed completely.
        const isEmptyList = Array.isArray(before.plugin) && before.plugin.length === 0;
        if (isEmptyList) assert.deepEqual({ plugin: [], ...valueOf(removed) }, before);
        else assert.deepEqual(valueOf(removed), before);
      }),
      { seed: 20_251, numRuns: 1_000 },
    );
  });
});

describe("the plugin in a server's environment", () => {
  const warnings: string[] = [];
  const logger = {
    debug: () => {},
    info: () => {},
    warn: (message: string) => void warnings.push(message),
    error: () => {},
  };
  const plugin = (): { config: PluginConfig; stateFolder: string; bundle: string } => {
    const stateFolder = join(tempDir("state"), "state");
    const bundle = join(tempDir("ext"), "opencode-plugin.js");
    writeFileSync(bundle, "export default {};");
    const places = { directory: undefined, env: {}, home: "/nowhere" };
    return { config: new PluginConfig({ bundle, stateFolder, places, logger }), stateFolder, bundle };
  };

  const settings = { tools: true, subagentDepth: 2, graceMs: 60_000 };
  /** The entry that a server which the extension starts gets. */
  const ownEntry = (stateFolder: string): unknown => [
    pathToFileURL(join(stateFolder, "opencode-plugin.js")).href,
    { stateFolder, tools: true, subagentDepth: 2, graceMs: 60_000 },
  ];

  beforeEach(() => void warnings.splice(0));

  it("is added to the user's own configuration there", async () => {
    const { config, stateFolder } = plugin();
    const content = '{ "model": "a/b", "plugin": ["x"], } // mine';
    const env = await config.serverEnv({ PATH: "/bin", OPENCODE_CONFIG_CONTENT: content }, settings);
    assert.equal(env.PATH, "/bin");
    assert.deepEqual(valueOf(env.OPENCODE_CONFIG_CONTENT ?? ""), {
      model: "a/b",
      plugin: ["x", ownEntry(stateFolder)],
    });
    for (const nothing of [undefined, "", "  "]) {
      const { OPENCODE_CONFIG_CONTENT } = await config.serverEnv(
        { OPENCODE_CONFIG_CONTENT: nothing },
        settings,
      );
      assert.deepEqual(valueOf(OPENCODE_CONFIG_CONTENT ?? ""), { plugin: [ownEntry(stateFolder)] });
    }
    assert.deepEqual(warnings, []);
  });

  it("leaves an unusable configuration alone, with a warning", async () => {
    const { config } = plugin();
    for (const content of ["{", "[]", '{ "plugin": 1 }']) {
      const env = { OPENCODE_CONFIG_CONTENT: content };
      assert.equal(await config.serverEnv(env, settings), env);
      assert.match(warnings.pop() ?? "", /without the agent tools: .*OPENCODE_CONFIG_CONTENT/);
    }
  });

  it("is in the state folder, readable only by this user, and written only if it differs", async () => {
    const { config, stateFolder, bundle } = plugin();
    const file = join(stateFolder, "opencode-plugin.js");
    await config.serverEnv({}, settings);
    assert.equal(readFileSync(file, "utf8"), "export default {};");
    if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
    const { ino } = statSync(file);
    await config.copyPlugin();
    assert.equal(statSync(file).ino, ino);
    writeFileSync(bundle, "export default { new: true };");
    await config.copyPlugin();
    assert.equal(readFileSync(file, "utf8"), "export default { new: true };");
  });

  it("stays as it is if the extension was removed since the daemon started", async () => {
    const { config, stateFolder, bundle } = plugin();
    const before = await config.serverEnv({}, settings);
    rmSync(bundle);
    assert.deepEqual(await config.serverEnv({}, settings), before);
    assert.deepEqual(warnings, []);
    rmSync(join(stateFolder, "opencode-plugin.js"));
    assert.deepEqual(await config.serverEnv({}, settings), {});
    assert.match(warnings.pop() ?? "", /without the agent tools/);
  });

  it("is updated if it exists, with a warning if that fails", async () => {
    const { config, stateFolder } = plugin();
    const file = join(stateFolder, "opencode-plugin.js");
    await config.refreshPlugin();
    assert.ok(!existsSync(file));
    mkdirSync(stateFolder);
    writeFileSync(file, "export default { old: true };");
    await config.refreshPlugin();
    assert.equal(readFileSync(file, "utf8"), "export default {};");
    rmSync(file);
    mkdirSync(file);
    await config.refreshPlugin();
    assert.match(warnings.pop() ?? "", /Couldn't update the agent tools in OpenCode/);
  });

  it("does not prevent the server from starting if it cannot be written", async () => {
    const { config, stateFolder } = plugin();
    mkdirSync(join(stateFolder, "opencode-plugin.js"), { recursive: true });
    const env = { PATH: "/bin" };
    assert.equal(await config.serverEnv(env, settings), env);
    assert.match(warnings.pop() ?? "", /without the agent tools/);
    assert.ok(existsSync(stateFolder));
  });
});

function comments(text: string): readonly string[] {
  return (text.match(/\/\/[^\r\n]*|\/\*.*?\*\//g) ?? []).map((comment) => comment.trimEnd());
}

/** Configurations as users write them: any layout, comments and trailing commas. None of their strings holds a slash. */
const configurations: fc.Arbitrary<string> = fc
  .record({
    eol: fc.constantFrom("\n", "\r\n"),
    gaps: fc.infiniteStream(
      fc.constantFrom(
        "",
        "",
        " ",
        "\t",
        "EOL",
        "EOL  ",
        "EOL\t",
        " // a, b]EOL",
        "/* c } */",
        " /* d */ EOL",
      ),
    ),
    commas: fc.infiniteStream(fc.boolean()),
    keys: fc.uniqueArray(fc.constantFrom("model", "x", "__proto", "agents", "plugin"), { maxLength: 4 }),
    values: fc.infiniteStream(fc.constantFrom("1", '"a,b"', "null", "{}", '{ "k": [1, 2] }', "[]")),
    plugins: fc.array(fc.constantFrom('"x"', '"y,z]"', '["file", { "a": 1 }]', "{}"), { maxLength: 3 }),
  })
  .map(({ eol, gaps, commas, keys, values, plugins }) => {
    const gap = (): string => (gaps.next().value as string).replaceAll("EOL", eol);
    const list = (open: string, items: readonly string[], close: string): string => {
      const trailing = items.length > 0 && commas.next().value ? `,${gap()}` : "";
      return open + items.map((item) => gap() + item + gap()).join(",") + trailing + gap() + close;
    };
    const valueFor = (key: string): string =>
      key === "plugin" ? list("[", plugins, "]") : (values.next().value as string);
    return (
      gap() +
      list(
        "{",
        keys.map((key) => `"${key}":${gap()}${valueFor(key)}`),
        "}",
      ) +
      gap()
    );
  });
