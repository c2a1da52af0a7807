import assert from "node:assert/strict";
import * as z from "zod/mini";
import { parse, ValidationError } from "../../../src/opencode/validation.ts";

describe("a value that does not match its schema", () => {
  const schema = z.record(z.string(), z.object({ type: z.string() }));

  it("is refused with the field's name", () => {
    assert.throws(
      () => parse(schema, { ses_1: { type: 1 } }),
      new ValidationError('"ses_1.type" is not of type string'),
    );
  });

  it("is refused in one short line, whatever the other side calls its fields", () => {
    for (const name of ["x".repeat(5_000), "data: {}\n\nevent: x\u2028\u0000"])
      assert.throws(
        () => parse(schema, { [name]: null }),
        (error: Error) => /^[^\p{Cc}\u2028\u2029]{1,150}$/u.test(error.message),
      );
  });
});
