import assert from "node:assert/strict";
import {
  asTemplate,
  fillIn,
  readTemplates,
  type Filled,
  type Variables,
} from "../../../src/ui/templates/template.ts";

const text = (filled: string): Filled => ({ kind: "text", text: filled });

describe("templates", () => {
  it("are texts, or objects with a prompt; what is neither is named, and the others are used", () => {
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

  it("of several settings come together, and of the same name the last one counts as a whole", () => {
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
    it(`there are none in a setting that is ${JSON.stringify(value)}`, () =>
      assert.deepEqual(readTemplates([value]), { templates: [], broken: [] }));

  const values: Variables = { selection: "x = 1", file: "src/a.ts" };
  const cases: readonly (readonly [string, string, Filled])[] = [
    ["fill in what is known, each time", "${file}: ${selection}, ${file}", text("src/a.ts: x = 1, src/a.ts")],
    ["leave other text alone", "$5 {file} $file ${ file", text("$5 {file} $file ${ file")],
    ["take a doubled sign for the text itself", "$${file} of ${file}", text("${file} of src/a.ts")],
    [
      "name every variable that nobody knows",
      "${a} ${b} ${a} ${file}",
      { kind: "unknown", names: ["a", "b"] },
    ],
    ["take no other spelling", "${File}", { kind: "unknown", names: ["File"] }],
    ["say what stands for nothing now", "${file} ${problem}", { kind: "missing", name: "problem" }],
    ["name the unknown ones first", "${problem} ${x}", { kind: "unknown", names: ["x"] }],
  ];
  for (const [title, prompt, filled] of cases)
    it(title, () => assert.deepEqual(fillIn(prompt, values), filled));

  it("fill in a text as it is, whatever it holds", () => {
    const selection = "${file} $& $1 $$";
    assert.deepEqual(fillIn("<${selection}>", { selection }), text(`<${selection}>`));
  });

  for (const prompt of ["Do it.", "Print ${file} and $${x}", "$", "${"])
    it(`stand for ${prompt} where that was saved`, () =>
      assert.deepEqual(fillIn(asTemplate(prompt), {}), text(prompt)));
});
