import assert from "node:assert/strict";
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StateFile } from "../../../src/daemon/state-files.ts";
import {
  followWorktrees,
  UserSaves,
  type SavedFile,
  type UserSavesParts,
} from "../../../src/daemon/user-saves.ts";
import { Emitter } from "../../../src/engine/event.ts";
import type { UserSave } from "../../../src/engine/server-model.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

describe("What the user saves", () => {
  let root: string;
  let state: StateFile;
  let saved: Emitter<SavedFile>;
  let saves: UserSaves;
  let connection: string;
  let changes: Emitter<void>;
  let tasks: readonly object[];
  let subagents: readonly object[];

  const open = (): Promise<StateFile> =>
    StateFile.open("/work", { stateFolder: root, clock: new ManualClock(), logger: strictLogger });
  const at = (name: string): string => join(root, "work", name);
  const create = (): UserSaves => {
    const parts = {
      directory: join(root, "work"),
      engine: {
        allTasks: () => tasks,
        subagents: { all: () => subagents },
        worktrees: { directories: () => [join(root, "worktree")] },
      },
      connecting: {
        get state() {
          return { kind: connection };
        },
        onDidChange: changes.event,
      },
      state,
    };
    return new UserSaves(parts as unknown as UserSavesParts, saved.event);
  };

  beforeEach(async () => {
    root = tempDir("saves");
    for (const folder of ["work", "worktree", "other"]) {
      mkdirSync(join(root, folder));
      for (const name of ["a", "b"]) writeFileSync(join(root, folder, name), "");
    }
    [connection, tasks, subagents] = ["connected", [{ status: "running" }], []];
    const fail = (error: unknown): void => assert.fail(String(error));
    [saved, changes] = [new Emitter(fail), new Emitter(fail)];
    state = await open();
    saves = create();
  });
  afterEach(() => saves.dispose());

  it("in a worktree is told with its directory, also through a link", async () => {
    const changed: string[] = [];
    const worktree = realpathSync(join(root, "worktree"));
    const engine = {
      worktrees: { directories: () => [worktree, "/elsewhere"] },
      worktreeWork: { userChanged: (directory: string) => void changed.push(directory) },
    };
    const following = followWorktrees(
      saved.event,
      engine as unknown as Parameters<typeof followWorktrees>[1],
    );
    symlinkSync(worktree, join(root, "link"));
    for (const path of ["other/a", "worktree/a", "link/b"]) saved.fire({ path: join(root, path), at: 1 });
    await until("both", () => changed.length === 2);
    assert.deepEqual(changed, [worktree, worktree]);
    following.dispose();
  });

  async function save(path: string, time: number): Promise<void> {
    saved.fire({ path, at: time });
    await saves.noted();
  }

  it("is remembered with its time, also by the next daemon", async () => {
    await save(at("a"), 1_000);
    await save(at("b"), 2_000);
    await state.close();
    const expected: readonly UserSave[] = [
      { path: at("a"), start: 1_000, end: 1_000 },
      { path: at("b"), start: 2_000, end: 2_000 },
    ];
    assert.deepEqual((await open()).saves, expected);
  });

  it("counts as one period while it is saved again and again", async () => {
    for (const time of [1_000, 9_000, 18_000, 60_000]) await save(at("a"), time);
    assert.deepEqual(saves.all, [
      { path: at("a"), start: 1_000, end: 18_000 },
      { path: at("a"), start: 60_000, end: 60_000 },
    ]);
  });

  it("is the same file if it was opened through a link", async function () {
    if (process.platform === "win32") return this.skip();
    symlinkSync(join(root, "work"), join(root, "link"));
    await save(join(root, "link", "a"), 1_000);
    assert.equal(saves.all[0]?.path, at("a"));
  });

  it("counts as one period whatever order it is reported in, and is written once for each change", async () => {
    let writes = 0;
    const keep = state.keepSaves.bind(state);
    state.keepSaves = (kept) => {
      writes++;
      keep(kept);
    };
    for (const time of [2_000, 1_000, 1_500, 2_000]) await save(at("a"), time);
    assert.deepEqual(saves.all, [{ path: at("a"), start: 1_000, end: 2_000 }]);
    assert.equal(writes, 2);
  });

  it("is remembered in the folder and its worktrees, and not elsewhere", async () => {
    await save(join(root, "other", "a"), 1_000);
    assert.deepEqual(saves.all, []);
    await save(join(root, "worktree", "a"), 1_000);
    await save(at("a"), 1_000);
    assert.equal(saves.all.length, 2);
  });

  it("is remembered while a task or a subagent is running, or if one has ended since", async () => {
    tasks = [{ status: "completed", endedAt: 999 }];
    await save(at("a"), 1_000);
    assert.deepEqual(saves.all, []);
    subagents = [{ status: "running" }];
    await save(at("a"), 1_000);
    [tasks, subagents] = [[{ status: "completed", endedAt: 100_001 }], []];
    await save(at("a"), 100_000);
    assert.equal(saves.all.length, 2);
  });

  it("is decided on once it is known what was running", async () => {
    [connection, tasks] = ["reconnecting", []];
    await save(at("a"), 1_000);
    await save(at("b"), 5_000);
    assert.deepEqual(saves.all, []);
    [connection, tasks] = ["connected", [{ status: "completed", endedAt: 2_000 }]];
    changes.fire();
    await saves.noted();
    assert.deepEqual(saves.all, [{ path: at("a"), start: 1_000, end: 1_000 }]);
    changes.fire();
    await saves.noted();
    assert.equal(saves.all.length, 1);
  });

  it("is forgotten only after 500 later periods", async () => {
    const earlier = Array.from({ length: 500 }, (_, n) => ({ path: at(String(n)), start: n, end: n }));
    state.keepSaves(earlier);
    await save(at("a"), 1_000_000);
    assert.deepEqual(saves.all, [...earlier.slice(1), { path: at("a"), start: 1_000_000, end: 1_000_000 }]);
  });
});
