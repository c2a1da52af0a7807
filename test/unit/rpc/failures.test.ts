import assert from "node:assert/strict";
import { ConnectionError } from "../../../src/engine/connection.ts";
import { AskFirst, Refusal, UserFacingError } from "../../../src/engine/errors.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import { describeError, errorFrom, OtherProtocol } from "../../../src/rpc/failures.ts";

describe("Errors between window and daemon", () => {
  const text = sentence("There is no task {0}.", "ses_1");
  const errors: readonly Error[] = [
    new Refusal("unknown-task", text),
    new AskFirst("build", text),
    new ServerFailure("POST /session", "refused", text, 500),
    new ServerFailure("GET /session", "unreachable", "It is gone."),
    new ConnectionError({ code: "bad-path", message: text, remedy: sentence("Set another one.") }),
    new UserFacingError(text),
    new OtherProtocol("window"),
    new OtherProtocol("daemon"),
    new Error("Unexpected."),
  ];

  for (const error of errors)
    it(`keep the content of a ${error.constructor.name}: ${error.message}`, () => {
      const travelled: unknown = JSON.parse(JSON.stringify(describeError(error)));
      const arrived = errorFrom(travelled);
      assert.ok(arrived instanceof error.constructor);
      assert.equal(arrived.message, error.message);
      assert.deepEqual({ ...arrived }, { ...error });
    });

  it("are not made from anything else", () => {
    assert.equal(errorFrom({ name: "TypeError" }), undefined);
    assert.equal(errorFrom(undefined), undefined);
  });
});
