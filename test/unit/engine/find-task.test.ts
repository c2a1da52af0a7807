import assert from "node:assert/strict";
import { findTask, noSuchSubagent, noSuchTask, withTombstone } from "../../../src/engine/find-task.ts";

describe("A task that is named by its ID", () => {
  const task = (id: string, parentSessionID = "ses_parent") => ({ id, parentSessionID });
  const tasks = [
    task("ses_aaaa111111"),
    task("ses_aaaa222222"),
    task("ses_bbbb222222", "ses_other"),
    ...Array.from({ length: 6 }, (_, index) => task(`ses_cccc99999${index}`)),
  ];
  const known = { all: () => tasks, get: (id: string) => tasks.find((each) => each.id === id) };
  const find = (reference: string, parent?: string): string => findTask(known, [], reference, parent).id;

  it("is found by its whole ID, its beginning or its end", () => {
    for (const reference of ["ses_aaaa111111", " ses_aaaa1\n", "111111"])
      assert.equal(find(reference), "ses_aaaa111111");
    assert.equal(findTask({ all: () => [], get: known.get }, [], "ses_aaaa111111").id, "ses_aaaa111111");
  });

  it("is looked for among the tasks of one parent, if one is given", () => {
    assert.equal(find("222222", "ses_other"), "ses_bbbb222222");
    assert.equal(find("222222", "ses_parent"), "ses_aaaa222222");
    assert.throws(() => find("ses_aaaa111111", "ses_other"), { code: "unknown-task" });
  });

  it("is refused if several have that part, of which at most five are named", () => {
    assert.throws(() => find("222222"), {
      code: "ambiguous-task",
      message: "Several tasks match 222222: 222222, 222222. Use more of the ID.",
    });
    assert.throws(() => find("ses_cccc"), {
      message: "Several tasks match ses_cccc: 999990, 999991, 999992, 999993, 999994. Use more of the ID.",
    });
  });

  it("is refused if it is empty or in the middle of an ID", () => {
    assert.throws(() => find("  "), {
      code: "unknown-task",
      message: "The task ID is empty. Use an ID from the list of tasks.",
    });
    assert.throws(() => find("aaaa11"), { code: "unknown-task" });
  });

  it("is refused if so little of the ID is given that it may be a guess", () => {
    for (const guess of ["ses_b", "11111", "3", "99993"])
      assert.throws(() => find(guess), { code: "unknown-task", message: / is too short for a task ID\. / });
    assert.deepEqual(
      ["ses_bb", "111111", "999993"].map((part) => find(part)),
      ["ses_bbbb222222", "ses_aaaa111111", "ses_cccc999993"],
    );
  });

  it("is remembered with its description when its session is gone, the thousand newest", () => {
    let gone = withTombstone([], { ...task("ses_gone123456"), description: "Old" });
    gone = withTombstone(gone, { ...task("ses_gone654321", "ses_other"), description: "Other" });
    gone = withTombstone(gone, { ...task("ses_gone123456"), description: "Find the bug" });
    assert.equal(gone.length, 2);
    const text =
      'The session of task 123456 "Find the bug" no longer exists. Start a new asyncagents_task instead.';
    for (const wanted of ["123456", "ses_gone1"])
      for (const parent of [undefined, "ses_parent"]) {
        const refusal = noSuchTask(gone, wanted, parent);
        assert.equal(refusal.code, "session-gone");
        assert.equal(refusal.message, text);
      }
    assert.equal(noSuchTask(gone, "123456", "ses_other").code, "unknown-task");
    assert.equal(noSuchTask(gone, "gone", undefined).code, "unknown-task");
    for (let index = 0; index < 999; index++)
      gone = withTombstone(gone, { ...task(`ses_${index}`), description: "" });
    assert.equal(gone.length, 1_000);
    assert.equal(noSuchTask(gone, "654321").code, "unknown-task");
    assert.equal(noSuchTask(gone, "123456").code, "session-gone");
  });

  it("if it was a subagent, says what to do", () => {
    assert.equal(
      noSuchSubagent("ses_a123456").message,
      "Subagent 123456 no longer exists. Refresh the view.",
    );
  });
});
