import assert from "node:assert/strict";
import {
  asTemplate,
  fillIn,
  readTemplates,
  type Filled,
  type Variables,
} from "../../../src/ui/launch-plan.ts";

const text = (filled: string): Filled => ({ kind: "text", text: filled });

describe("templates", () => {
  it("are texts, or objects with a prompt; invalid ones are named, and the others are used", () => {
    assert.deepEqual(
      readTemplates([
        {
          Short: "Do it.",
          Long: { prompt: "Do it all.", agent: "explore", description: "All of it" },
          Empty: " ",
          Number: 3,
          List: ["Do it."],
          Nothing: null,
          Wrong: { prompt: "Do it.", agent: 3 },
        },
      ]),
      {
        templates: [
          { name: "Short", prompt: "Do it.", agent: undefined, description: undefined },
          { name: "Long", prompt: "Do it all.", agent: "explore", description: "All of it" },
        ],
        broken: ["Empty", "Number", "List", "Nothing", "Wrong"],
      },
    );
  });

  it("of several settings are merged, and the last one of a name replaces the others completely", () => {
    const user = { Mine: "a", Both: { prompt: "b", agent: "explore" } };
    const { templates } = readTemplates([user, undefined, { Both: "c" }]);
    assert.deepEqual(
      templates.map(({ name, prompt, agent }) => [name, prompt, agent]),
      [
        ["Mine", "a", undefined],
        ["Both", "c", undefined],
      ],
    );
  });

  for (const value of [undefined, null, "text", 3, ["text"]])
    it(`are empty for the setting ${JSON.stringify(value)}`, () =>
      assert.deepEqual(readTemplates([value]), { templates: [], broken: [] }));

  const values: Variables = { selection: "x = 1", file: "src/a.ts" };
  const cases: readonly (readonly [string, string, Filled])[] = [
    [
      "fill in known variables, each time",
      "${file}: ${selection}, ${file}",
      text("src/a.ts: x = 1, src/a.ts"),
    ],
    ["leave other text alone", "$5 {file} $file ${ file", text("$5 {file} $file ${ file")],
    ["keep a variable with a doubled sign as text", "$${file} of ${file}", text("${file} of src/a.ts")],
    ["name every unknown variable", "${a} ${b} ${a} ${file}", { kind: "unknown", names: ["a", "b"] }],
    ["accept no other spelling of a variable", "${File}", { kind: "unknown", names: ["File"] }],
    ["name a variable that has no value now", "${file} ${problem}", { kind: "missing", name: "problem" }],
    [
      "name unknown variables before ones without a value",
      "${problem} ${x}",
      { kind: "unknown", names: ["x"] },
    ],
  ];
  for (const [title, prompt, filled] of cases)
    it(title, () => assert.deepEqual(fillIn(prompt, values), filled));

  it("insert a text unchanged, whatever it contains", () => {
    const selection = "${file} $& $1 $$";
    assert.deepEqual(fillIn("<${selection}>", { selection }), text(`<${selection}>`));
  });

  for (const prompt of ["Do it.", "Print ${file} and $${x}", "$", "${"])
    it(`give ${prompt} again after it was saved as one`, () =>
      assert.deepEqual(fillIn(asTemplate(prompt), {}), text(prompt)));
});
