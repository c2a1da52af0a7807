import assert from "node:assert/strict";
import type { TaskError } from "../../../src/engine/task.ts";
import { endOf } from "../../../src/engine/turn-end.ts";
import { promptLost } from "../../../src/engine/turn-errors.ts";
import { record } from "./builders.ts";

const END = { messageID: "msg_answer", at: 2_000 };

describe("The end of a turn", () => {
  const failure = (kind: "between-steps", refused?: string): [string, string] => {
    const event = endOf({ kind, ...END, refused });
    assert.ok(event.type === "turn-failed");
    assert.deepEqual([event.at, event.finalMessageID], [2_000, "msg_answer"]);
    return [event.error.name, event.error.message];
  };

  it("is a completion with its answer, also if the conversation was summed up after it", () => {
    for (const kind of ["completed", "compacted"] as const)
      assert.deepEqual(endOf({ kind, ...END, answer: "Done." }), {
        type: "turn-completed",
        at: 2_000,
        finalMessageID: "msg_answer",
        answer: "Done.",
      });
  });

  it("is a cancellation if it was aborted, and otherwise its error", () => {
    assert.deepEqual(endOf({ kind: "aborted", ...END }), {
      type: "cancelled",
      at: 2_000,
      finalMessageID: "msg_answer",
    });
    const error = { name: "APIError", message: "Overloaded." };
    assert.deepEqual(endOf({ kind: "failed", ...END, error }), {
      type: "turn-failed",
      at: 2_000,
      error,
      finalMessageID: "msg_answer",
    });
  });

  it("is a failure after a tool call, with what the user rejected, if that ended it", () => {
    assert.deepEqual(failure("between-steps", "bash"), [
      "PermissionRejected",
      "The request of the tool bash was rejected, which ended the task.",
    ]);
    assert.deepEqual(failure("between-steps"), [
      "NoAnswer",
      "The turn ended after a tool call, without an answer. Continue the task as a new one.",
    ]);
  });

  it("of a lost prompt says what was lost with it, and what to do", () => {
    const message = ({ name, message: text }: TaskError): string => {
      assert.equal(name, "PromptLost");
      return text;
    };
    assert.match(message(promptLost(record())), /^The prompt was lost .* Launch a new task instead\.$/);
    assert.match(
      message(promptLost(record({ isForked: true }))),
      /^The conversation and the prompt were lost .* Launch a new task instead\.$/,
    );
    assert.match(
      message(promptLost(record({ isForked: true, status: "resumed" }))),
      /^The follow-up was lost .* Continue the task as a new one\.$/,
    );
  });
});
