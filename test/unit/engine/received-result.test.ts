import assert from "node:assert/strict";
import {
  endsWait,
  isDelegated,
  isWaitingFor,
  receivedThrough,
  RESULT_MARK,
} from "../../../src/engine/received-result.ts";
import type { Message, Part, ToolPart, ToolState } from "../../../src/engine/server-model.ts";
import { INTERRUPTED_ERROR, type TaskRecord } from "../../../src/engine/task.ts";
import { answer, prompt, record, textPart } from "./builders.ts";

const OUTPUT = "asyncagents_output";
const TASK = "ses_abcdef";

type Outcome = Partial<ToolState> & { readonly status: ToolState["status"] };

function call(tool: string, state: Outcome, subagent?: ToolPart["subagent"]): ToolPart {
  return {
    ...{ type: "tool", id: "prt_1", sessionID: "ses_parent", messageID: "msg_1", tool, callID: "call_1" },
    state: { input: {}, start: 50, end: 200, ...state } as ToolState,
    subagent,
  };
}

const conversation = (...parts: readonly Part[]): readonly Message[] => [
  prompt(),
  answer({ id: "msg_old" }, parts.slice(1)),
  answer({}, parts.slice(0, 1)),
];

const done = (facts: Partial<TaskRecord> = {}): TaskRecord =>
  record({ id: TASK, status: "completed", startedAt: 100, endedAt: 150, ...facts });

describe("A call that waits for a task", () => {
  it("has ended once it has returned, if it is one of those that wait", () => {
    for (const [status, ended] of [
      ["pending", false],
      ["running", false],
      ["completed", true],
      ["error", true],
    ] as const) {
      assert.equal(endsWait(call(OUTPUT, { status })), ended);
      assert.equal(endsWait(call("task", { status }, { sessionID: undefined })), ended);
      assert.equal(endsWait(call("read", { status })), false);
    }
    assert.equal(endsWait(textPart("Done.")), false);
  });

  it("may still return the end of a task while it runs, if it names it, or can't be read yet", () => {
    const waits = (state: Outcome, tool = OUTPUT): boolean =>
      isWaitingFor(conversation(call(tool, state)), done());
    assert.ok(waits({ status: "pending" }));
    for (const task_id of [TASK, "ses_abc", "abcdef", "(abcdef)", "abcdef."])
      assert.ok(waits({ status: "running", input: { task_id } }), task_id);
    for (const task_id of ["", "...", "bcde", "ses_other", undefined])
      assert.ok(!waits({ status: "running", input: { task_id } }), task_id);
    assert.ok(!waits({ status: "completed", input: { task_id: TASK } }));
    assert.ok(!waits({ status: "error", input: { task_id: TASK } }));
    assert.ok(!waits({ status: "pending" }, "read"));
    assert.ok(!waits({ status: "running", input: { task_id: TASK } }, "read"));
  });

  it("counts only if it is in the newest answer", () => {
    const waiting = call(OUTPUT, { status: "pending" });
    assert.ok(!isWaitingFor(conversation(textPart("Done."), waiting), done()));
    assert.ok(!isWaitingFor([], done()));
    assert.ok(!isWaitingFor([{ ...prompt(), parts: [waiting] }], done()));
  });
});

describe("A task that OpenCode's own tool launched", () => {
  const subagent = { sessionID: TASK };

  it("is delegated while that call is open, unless its server died", () => {
    const delegated = (state: Outcome, launched: ToolPart["subagent"], facts?: Partial<TaskRecord>) =>
      isDelegated(conversation(call("task", state, launched)), done(facts));
    assert.ok(delegated({ status: "running" }, subagent));
    assert.ok(!delegated({ status: "running" }, { sessionID: "ses_other" }));
    assert.ok(!delegated({ status: "running" }, undefined));
    assert.ok(!delegated({ status: "completed" }, subagent));
    const error = { name: INTERRUPTED_ERROR, message: "" };
    assert.ok(!delegated({ status: "running" }, subagent, { error }));
    assert.ok(delegated({ status: "running" }, subagent, { error: { name: "APIError", message: "" } }));
    assert.ok(
      !isDelegated(conversation(textPart("Done."), call("task", { status: "running" }, subagent)), done()),
    );
  });

  const received = (state: Outcome, launched: ToolPart["subagent"] = subagent, facts?: Partial<TaskRecord>) =>
    receivedThrough(conversation(textPart("Done."), call("task", state, launched)), done(facts));

  it("needs no notice once that call has returned its answer, or the error that ended it", () => {
    const notice = {
      state: "skipped",
      reason: "The parent received the result through OpenCode's task tool.",
    };
    assert.deepEqual(received({ status: "completed" }), notice);
    assert.deepEqual(received({ status: "completed" }, subagent, { endedAt: 200 }), notice);
    assert.deepEqual(received({ status: "error" }), notice);
    assert.deepEqual(received({ status: "error" }, subagent, { endedAt: 900 }), notice);
    for (const startedAt of [50, 200])
      assert.deepEqual(received({ status: "error" }, subagent, { startedAt }), notice);
  });

  it("needs one if the call didn't wait for this end", () => {
    assert.equal(received({ status: "running" }), undefined);
    assert.equal(received({ status: "pending" }), undefined);
    assert.equal(received({ status: "completed" }, { sessionID: "ses_other" }), undefined);
    assert.equal(received({ status: "completed" }, subagent, { endedAt: 201 }), undefined);
    for (const startedAt of [49, 201])
      for (const status of ["completed", "error"] as const)
        assert.equal(received({ status }, subagent, { startedAt }), undefined);
    assert.equal(receivedThrough(conversation(call("read", { status: "completed" })), done()), undefined);
  });
});

describe("A task whose parent has fetched its result", () => {
  const fetched = (tool: string, state: Outcome) => receivedThrough(conversation(call(tool, state)), done());
  const mark = (taskID: string, endedAt: number) => ({ [RESULT_MARK]: { taskID, endedAt } });

  it("needs no notice of that end, and one of any other", () => {
    assert.deepEqual(fetched(OUTPUT, { status: "completed", metadata: mark(TASK, 150) }), {
      state: "skipped",
      reason: "The parent received the result through asyncagents_output.",
    });
    assert.equal(fetched(OUTPUT, { status: "completed", metadata: mark(TASK, 149) }), undefined);
    assert.equal(fetched(OUTPUT, { status: "completed", metadata: mark("ses_other", 150) }), undefined);
    assert.equal(fetched(OUTPUT, { status: "completed", metadata: {} }), undefined);
    assert.equal(fetched(OUTPUT, { status: "completed" }), undefined);
    assert.equal(fetched(OUTPUT, { status: "running", metadata: mark(TASK, 150) }), undefined);
    assert.equal(fetched("read", { status: "completed", metadata: mark(TASK, 150) }), undefined);
  });
});
