import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import type { Task } from "../../../src/engine/task.ts";
import { lossWords, stoppable, workWords, type FolderWork } from "../../../src/ui/background-work.ts";

const NOW = 1_000_000;

function work(windows: number, ages: readonly number[], memory?: number): FolderWork {
  const tasks = ages.map((age) => ({ createdAt: NOW - age }) as Task);
  return { directory: "/work", windows, tasks, memory };
}

const words = (folder: FolderWork): string => workWords(folder, NOW).map(english).join(" · ");
const losses = (...folders: readonly FolderWork[]): readonly string[] => lossWords(folders).map(english);

describe("the background work of a user", () => {
  it("is listed where tasks work, or no window has the folder open", () => {
    const [idle, working, left] = [work(1, []), work(1, [1]), work(0, [])];
    assert.deepEqual(stoppable({ folders: [idle, working, left] }), [working, left]);
  });

  it("says how much works there, since when, who looks on and what it takes", () => {
    assert.equal(words(work(0, [5_000], 411_600_000)), "1 task, for 5 s · open in no window · 412 MB");
    assert.equal(words(work(1, [200_000, 10_000])), "2 tasks, the oldest for 3 m 20 s · open in 1 window");
    assert.equal(words(work(2, [])), "no tasks · open in 2 windows");
  });

  it("says of a clock that was put back no negative time", () => {
    assert.equal(words(work(1, [-5_000])), "1 task, for 0 ms · open in 1 window");
  });

  it("says what is lost when it is stopped, and nothing that is not", () => {
    const [task, ...others] = losses(work(1, [1]));
    assert.match(task ?? "", /^1 task is cancelled/);
    assert.deepEqual(others, []);
    const [tasks, folder] = losses(work(1, [1, 2]), work(0, [3]));
    assert.match(tasks ?? "", /^3 tasks are cancelled/);
    assert.equal(folder, "A folder that no window has open is closed: its OpenCode server ends.");
    assert.match(losses(work(0, []), work(0, [])).join(), /^2 folders that no window has open are closed/);
  });
});
