import assert from "node:assert/strict";
import fc from "fast-check";
import { Refusal } from "../../../src/engine/errors.ts";
import { TASK_STATUSES, type TaskStatus } from "../../../src/engine/task.ts";
import { transition, type TaskEvent } from "../../../src/engine/transitions.ts";
import { record } from "./builders.ts";

const EVENTS: Readonly<Record<TaskEvent["type"], TaskEvent>> = {
  "turn-completed": { type: "turn-completed", at: 9_000, finalMessageID: "msg_final", answer: "Done." },
  "turn-failed": { type: "turn-failed", at: 9_000, error: { name: "APIError", message: "refused" } },
  cancelled: { type: "cancelled", at: 9_000 },
  resume: { type: "resume", at: 9_000, promptMessageID: "msg_next" },
};

/** The table of the specification, repeated here on purpose. */
const ALLOWED: readonly (readonly [TaskStatus, TaskEvent["type"], TaskStatus])[] = [
  ["running", "turn-completed", "completed"],
  ["running", "turn-failed", "error"],
  ["running", "cancelled", "cancelled"],
  ["resumed", "turn-completed", "completed"],
  ["resumed", "turn-failed", "error"],
  ["resumed", "cancelled", "cancelled"],
  ["completed", "resume", "resumed"],
];

describe("transitions", () => {
  for (const status of TASK_STATUSES) {
    for (const event of Object.values(EVENTS)) {
      const next = ALLOWED.find(([from, type]) => from === status && type === event.type)?.[2];
      it(`${status} + ${event.type} ${next ? `→ ${next}` : "is refused"}`, () => {
        const before = record({ status });
        if (next) assert.equal(transition(before, event).status, next);
        else
          assert.throws(
            () => transition(before, event),
            (error) =>
              error instanceof Refusal &&
              error.message.includes(
                status === "resumed" && event.type === "resume" ? "being resumed" : status,
              ),
          );
        assert.equal(before.status, status, "the record given is left as it was");
      });
    }
  }

  it("any sequence of events follows the table", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...Object.values(EVENTS)), { maxLength: 30 }), (events) => {
        let now = record();
        for (const event of events) {
          const { status } = now;
          try {
            now = transition(now, event);
          } catch (error) {
            assert.ok(error instanceof Refusal);
            continue;
          }
          assert.ok(
            ALLOWED.some(([from, type, to]) => from === status && type === event.type && to === now.status),
          );
          assert.equal(now.error !== undefined, now.status === "error");
        }
      }),
    );
  });

  it("a resumed task has not ended", () => {
    const ended = transition(record(), EVENTS["turn-completed"]);
    assert.equal(transition(ended, { ...EVENTS.resume, at: 10_000 }).endedAt, undefined);
  });

  it("an end keeps the time, the final message and the error", () => {
    assert.deepEqual(
      (({ endedAt, finalMessageID, error }) => ({ endedAt, finalMessageID, error }))(
        transition(record(), EVENTS["turn-completed"]),
      ),
      { endedAt: 9_000, finalMessageID: "msg_final", error: undefined },
    );
    assert.deepEqual(transition(record(), EVENTS["turn-failed"]).error, {
      name: "APIError",
      message: "refused",
    });
    const resumed = record({ status: "resumed", finalMessageID: "msg_before" });
    const interrupted = { ...EVENTS["turn-failed"], openMessageID: "msg_open" };
    assert.equal(transition(resumed, interrupted).finalMessageID, "msg_open");
    assert.equal(transition(resumed, EVENTS["turn-failed"]).finalMessageID, "msg_before");
  });

  it("a refusal says what to do instead", () => {
    const refused = (status: TaskStatus, type: TaskEvent["type"]): string => {
      try {
        transition(record({ status }), EVENTS[type]);
      } catch (error) {
        assert.ok(error instanceof Refusal);
        return `${error.code}: ${error.message.split(/[.;] /).at(-1)}`;
      }
      return "";
    };
    assert.deepEqual(
      TASK_STATUSES.map((status) => [status, refused(status, "resume"), refused(status, "cancelled")]),
      [
        ["running", "wrong-status: send it a message instead, or wait until it has completed.", ""],
        ["completed", "", "wrong-status: Resume it to continue."],
        [
          "error",
          "wrong-status: retry or continue it as a new task.",
          "wrong-status: Launch a new task to continue.",
        ],
        [
          "cancelled",
          "wrong-status: retry or continue it as a new task.",
          "wrong-status: Launch a new task to continue.",
        ],
        [
          "resumed",
          "being-resumed: Send it a message instead, or wait for its result before you resume it again.",
          "",
        ],
      ],
    );
  });

  it("a resume that never began isn't counted, and its message waits again", () => {
    const followUp = { text: "More.", messageID: "msg_next" };
    const resumed = {
      ...transition(transition(record(), EVENTS["turn-completed"]), EVENTS.resume),
      followUp,
    };
    assert.equal(resumed.resumeCount, 1);
    const lost = { ...EVENTS["turn-failed"], neverBegan: true } as TaskEvent;
    const end = (event: TaskEvent, facts = {}) => {
      const { resumeCount, followUp: left } = transition({ ...resumed, ...facts }, event);
      return [resumeCount, left];
    };
    assert.deepEqual(end(lost), [0, { text: "More." }]);
    assert.deepEqual(end(EVENTS["turn-failed"]), [1, undefined]);
    assert.deepEqual(end(EVENTS["turn-completed"]), [1, undefined]);
    assert.deepEqual(end(EVENTS.cancelled, { followUp: { text: "Waits." } }), [1, { text: "Waits." }]);
    assert.deepEqual(end({ ...EVENTS.cancelled, neverBegan: true } as TaskEvent), [0, { text: "More." }]);
    assert.deepEqual(end(EVENTS.cancelled), [1, undefined]);
    assert.deepEqual(end(lost, { status: "running" }), [1, { text: "More." }]);
  });
});
