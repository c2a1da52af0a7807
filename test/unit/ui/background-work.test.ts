import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import type { Task } from "../../../src/engine/task.ts";
import {
  lossWords,
  sharers,
  stoppable,
  workWords,
  type FolderWork,
} from "../../../src/ui/background-work.ts";

const NOW = 1_000_000;

function work(windows: number, ages: readonly number[], memory?: number): FolderWork {
  const tasks = ages.map((age) => ({ createdAt: 0, startedAt: NOW - age }) as Task);
  return { directory: "/work", windows, tasks, server: { pid: 1, memory } };
}

const words = (folder: FolderWork, shared = 1): string =>
  workWords(folder, shared, NOW).map(english).join(" · ");
const losses = (...folders: readonly FolderWork[]): readonly string[] => lossWords(folders).map(english);

describe("the user's background work", () => {
  it("is listed if tasks are running, or no window has the folder open", () => {
    const [idle, working, left] = [work(1, []), work(1, [1]), work(0, [])];
    assert.deepEqual(stoppable({ folders: [idle, working, left] }), [working, left]);
  });

  it("shows the number of tasks, their age, the open windows and the memory", () => {
    assert.equal(words(work(0, [5_000], 411_600_000)), "1 task, for 5 s · open in no window · 412 MB");
    assert.equal(words(work(1, [200_000, 10_000])), "2 tasks, the oldest for 3 m 20 s · open in 1 window");
    assert.equal(words(work(1, [400])), "1 task, for 1 s · open in 1 window");
    assert.equal(words(work(2, [])), "no tasks · open in 2 windows");
    assert.equal(
      words(work(1, [], 411_600_000), 3),
      "no tasks · open in 1 window · 412 MB, shared by 3 folders",
    );
  });

  it("includes which folders share a server", () => {
    const folders = [1, 2, 1, undefined].map((pid, at) => ({
      ...work(0, [at]),
      server: pid === undefined ? pid : { pid },
    }));
    const [one, other] = folders;
    assert.ok(one && other);
    assert.deepEqual(sharers(one, { folders }), [one, folders[2]]);
    assert.deepEqual(sharers(other, { folders }), [other]);
  });

  it("shows no negative time after the clock was set back", () => {
    assert.equal(words(work(1, [-5_000])), "1 task, for 1 s · open in 1 window");
  });

  it("shows before it is stopped what stops, and nothing else", () => {
    const [task, ...others] = losses(work(1, [1]));
    assert.match(task ?? "", /^This stops the agent of 1 task/);
    assert.deepEqual(others, []);
    const [tasks, folder] = losses(work(1, [1, 2]), work(0, [3]));
    assert.match(tasks ?? "", /^This stops the agents of 3 tasks/);
    assert.equal(
      folder,
      "The folder isn't open in any window, so its OpenCode server also stops unless another folder uses it.",
    );
    assert.match(losses(work(0, []), work(0, [])).join(), /^2 folders aren't open in any window/);
  });
});
