import assert from "node:assert/strict";
import * as z from "zod/mini";
import { TASK_STATUSES } from "../../../src/engine/task.ts";
import { toolInputSchema } from "../../../src/tools/input-schema.ts";
import { DECLARATIONS } from "../../../src/tools/declarations.ts";

interface Schema {
  readonly type: string;
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly required?: readonly string[];
}

function schemaOf(name: string): Schema {
  const tool = DECLARATIONS.find((each) => each.name === `asyncagents_${name}`);
  assert.ok(tool);
  return toolInputSchema(tool) as unknown as Schema;
}

describe("the tool declarations for models", () => {
  it("have five tools", () => {
    assert.deepEqual(
      DECLARATIONS.map(({ name }) => name),
      ["task", "output", "cancel", "list", "clear"].map((name) => `asyncagents_${name}`),
    );
  });

  for (const { name, title, description, input } of DECLARATIONS) {
    it(`describe ${name} and each of its parameters briefly`, () => {
      assert.ok(title.length < 40);
      const words = description.split(/\s+/).length;
      assert.ok(words > 20 && words <= 120, `${words} words`);
      for (const [field, schema] of Object.entries(input)) {
        const told = z.toJSONSchema(schema).description;
        assert.ok(told && told.length > 20, `${field}: ${told}`);
      }
    });
  }

  it("give each tool its parameters, and require only necessary ones", () => {
    const taken = DECLARATIONS.map((tool) => {
      const { type, properties, required = [] } = schemaOf(tool.name.replace("asyncagents_", ""));
      assert.equal(type, "object");
      return [Object.keys(properties), required];
    });
    assert.deepEqual(taken, [
      [
        ["description", "prompt", "agent", "fork", "resume", "send_to", "batch_id", "isolation", "model"],
        ["prompt"],
      ],
      [["task_id", "block", "timeout"], ["task_id"]],
      [["task_id", "batch_id"], []],
      [["status", "batch_id"], []],
      [["task_id", "batch_id"], []],
    ]);
  });

  it("are plain JSON schemas with types, limits and descriptions", () => {
    assert.deepEqual(schemaOf("output").properties["timeout"], {
      type: "number",
      minimum: 0,
      description: "With block: the seconds after which to come back anyway; by default 30, at most 600.",
    });
    assert.deepEqual(schemaOf("list").properties["status"]?.["enum"], [...TASK_STATUSES]);
    for (const tool of DECLARATIONS) {
      const schema = toolInputSchema(tool);
      assert.deepEqual(JSON.parse(JSON.stringify(schema)), { ...schema });
      assert.equal("$schema" in schema, false);
    }
  });
});
