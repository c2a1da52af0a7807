import assert from "node:assert/strict";
import fc from "fast-check";
import type { OverviewTask } from "../../../src/protocol/overview.ts";
import { axisOf, lanesOf, spendingOf } from "../../../src/webview/overview/layout.ts";
import { NOW } from "../../support/panel-page/fake-task.ts";
import { DAY_START, HOUR, laneTask, MINUTE } from "../../support/panel-page/overview-page.ts";

const active = { status: "running", endedAt: undefined } as const;

describe("the layout of the overview", () => {
  const order = (tasks: readonly OverviewTask[], from = DAY_START): readonly string[] =>
    lanesOf(tasks, from).map(({ task, depth }) => `${"  ".repeat(depth)}${task.id}`);
  const intervals = (facts: Partial<OverviewTask>): readonly string[] =>
    lanesOf([laneTask("a", facts)], 0)[0]!.intervals.map(
      ({ kind, from, to }) => `${kind} ${minutesAgo(from)}-${to === undefined ? "now" : minutesAgo(to)}`,
    );
  const minutesAgo = (time: number): number => (NOW - time) / MINUTE;
  const ago = (minutes: number): number => NOW - minutes * MINUTE;

  it("lists the latest launch first, and subtasks below what launched them", () => {
    const at = (createdAt: number, parentID = "ses_parent") => ({ createdAt, parentID });
    assert.deepEqual(
      order(
        [
          laneTask("early", at(1)),
          laneTask("late", at(5)),
          laneTask("inner", at(3, "sub")),
          laneTask("sub", at(2, "early")),
          laneTask("other", at(4, "early")),
        ],
        0,
      ),
      ["late", "early", "  other", "  sub", "    inner"],
    );
  });

  it("leaves out what ended before the time that is shown, unless a subtask is shown", () => {
    const over = laneTask("over", { createdAt: 1, endedAt: ago(90) });
    const above = laneTask("above", { createdAt: 2, endedAt: ago(80) });
    const below = laneTask("below", { ...active, parentID: "above" });
    assert.deepEqual(order([over, above, below], ago(60)), ["above", "  below"]);
  });

  it("lists tasks once that are their own ancestors", () => {
    const tasks = [
      laneTask("a", { parentID: "b" }),
      laneTask("b", { parentID: "a" }),
      laneTask("c", { parentID: "c" }),
    ];
    assert.deepEqual(
      order(tasks)
        .map((line) => line.trim())
        .sort(),
      ["a", "b", "c"],
    );
  });

  it("shows how long a task was queued before it ran", () => {
    assert.deepEqual(intervals({ createdAt: ago(30), startedAt: ago(20), endedAt: ago(5) }), [
      "queued 30-20",
      "working 20-5",
    ]);
    assert.deepEqual(intervals({ createdAt: ago(30) - 300, startedAt: ago(30), endedAt: ago(5) }), [
      "working 30-5",
    ]);
    assert.deepEqual(intervals({ ...active, phase: "queued", createdAt: ago(30), startedAt: ago(30) }), [
      "queued 30-now",
    ]);
    assert.deepEqual(
      intervals({ status: "cancelled", worked: 0, createdAt: ago(30), startedAt: ago(30), endedAt: ago(5) }),
      ["queued 30-5"],
    );
  });

  it("shows earlier turns, with nothing between them", () => {
    const times: Partial<OverviewTask> = {
      createdAt: ago(60),
      startedAt: ago(10),
      spans: [
        ["turn", ago(55), ago(50)],
        ["turn", ago(40), ago(30)],
      ],
    };
    const earlier = ["queued 60-55", "working 55-50", "working 40-30"];
    assert.deepEqual(intervals({ ...times, endedAt: ago(5) }), [...earlier, "working 10-5"]);
    assert.deepEqual(intervals({ ...times, ...active, phase: "queued" }), [...earlier, "queued 10-now"]);
  });

  it("doesn't claim to know when turns ran that aren't stored", () => {
    const times = { createdAt: ago(30), startedAt: ago(10), hasUnknownTurns: true };
    assert.deepEqual(intervals({ ...times, endedAt: ago(5) }), ["earlier 30-10", "working 10-5"]);
    assert.deepEqual(intervals({ ...times, ...active, phase: "queued" }), ["earlier 30-10", "queued 10-now"]);
    assert.deepEqual(intervals({ ...times, spans: [["turn", ago(20), ago(15)]], endedAt: ago(5) }), [
      "earlier 30-20",
      "working 20-15",
      "working 10-5",
    ]);
  });

  it("shows when a task waited for the user, in each of its turns", () => {
    const spans: OverviewTask["spans"] = [
      ["wait", ago(28), ago(26)],
      ["turn", ago(30), ago(20)],
      ["wait", ago(9), ago(8)],
      ["wait", ago(7), ago(6)],
    ];
    const times = { createdAt: ago(30), startedAt: ago(10), spans };
    const [first, second] = [
      ["working 30-28", "waiting 28-26", "working 26-20"],
      ["working 10-9", "waiting 9-8", "working 8-7", "waiting 7-6"],
    ];
    assert.deepEqual(intervals({ ...times, endedAt: ago(5) }), [...first, ...second, "working 6-5"]);
    assert.deepEqual(intervals({ ...times, status: "cancelled", endedAt: ago(6) }), [...first, ...second]);
    assert.deepEqual(intervals({ ...times, ...active, phase: "needs-answer", waitingSince: ago(1) }), [
      ...first,
      ...second,
      "working 6-1",
      "waiting 1-now",
    ]);
  });

  it("shows since when a task has been waiting for the user, within its turn", () => {
    const times = { ...active, phase: "needs-permission", createdAt: ago(9), startedAt: ago(9) } as const;
    assert.deepEqual(intervals({ ...times, waitingSince: ago(2) }), ["working 9-2", "waiting 2-now"]);
    assert.deepEqual(intervals({ ...times, waitingSince: ago(20) }), ["working 9-9", "waiting 9-now"]);
  });

  it("has an axis of round times that contains the start and has room after now", () => {
    const axis = axisOf(ago(285), NOW, DAY_START);
    assert.deepEqual(
      axis.ticks.map((tick) => (tick - DAY_START) / HOUR),
      [4, 5, 6, 7, 8, 9],
    );
    assert.equal(axis.to, DAY_START + 10 * HOUR);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 25 * HOUR }), fc.integer({ min: 0, max: 25 * HOUR }), (a, b) => {
        const [from, now] = [DAY_START + Math.min(a, b), DAY_START + Math.max(a, b)];
        const { ticks, to, ...first } = axisOf(from, now, DAY_START);
        assert.ok(first.from <= from && now < to);
        assert.equal(ticks[0], first.from);
        assert.ok(ticks.length >= 1 && ticks.length <= 8, String(ticks.length));
      }),
    );
  });

  it("adds up cost and tokens when tasks end, and until now for active ones", () => {
    const tasks = [
      laneTask("running", { ...active, cost: 1, tokens: 1 }),
      laneTask("second", { endedAt: ago(5), cost: 2, tokens: 10 }),
      laneTask("first", { endedAt: ago(9), cost: 4, tokens: 100 }),
    ];
    assert.deepEqual(spendingOf(tasks, NOW), [
      { at: ago(9), cost: 4, tokens: 100 },
      { at: ago(5), cost: 6, tokens: 110 },
      { at: NOW, cost: 7, tokens: 111 },
    ]);
  });
});
