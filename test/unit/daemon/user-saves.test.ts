import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { StateFile } from "../../../src/daemon/state-files.ts";
import { UserSaves, type SavedFile, type UserSavesParts } from "../../../src/daemon/user-saves.ts";
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
    saved = new Emitter((error) => assert.fail(String(error)));
    state = await open();
    saves = create();
  });
  afterEach(() => saves.dispose());

  /** Saves a file at this time, and waits until that is noted. */
  async function save(path: string, time: number): Promise<void> {
    const before = JSON.stringify(saves.all);
    saved.fire({ path, at: time });
    await until("the note", () => JSON.stringify(saves.all) !== before);
  }

  /** Whether a save is noted. */
  async function isNoted(path: string, time = 1_000): Promise<boolean> {
    saved.fire({ path, at: time });
    // What is saved later is noted later.
    [connection, tasks] = ["connected", [{ status: "running" }]];
    await turn();
    await save(at("b"), 1_000_000);
    return saves.all.some(({ path }) => path !== at("b"));
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

  it("is remembered in the folder and its worktrees, and not elsewhere", async () => {
    await save(join(root, "worktree", "a"), 1_000);
    await save(at("a"), 1_000);
    assert.equal(saves.all.length, 2);
    saves.dispose();
    state = await StateFile.open("/other", {
      stateFolder: root,
      clock: new ManualClock(),
      logger: strictLogger,
    });
    saves = create();
    assert.equal(await isNoted(join(root, "other", "a")), false);
  });

  it("is remembered while a task or a subagent is running, or if one has ended since", async () => {
    [tasks, subagents] = [[{ status: "completed", endedAt: 999 }], [{ status: "running" }]];
    await save(at("a"), 1_000);
    [tasks, subagents] = [[{ status: "completed", endedAt: 100_001 }], []];
    await save(at("a"), 100_000);
    tasks = [{ status: "completed", endedAt: 999 }];
    saves.dispose();
    state = await StateFile.open("/other", {
      stateFolder: root,
      clock: new ManualClock(),
      logger: strictLogger,
    });
    saves = create();
    assert.equal(await isNoted(at("a")), false);
  });

  it("is remembered while it isn't known what is running, if the folder is used", async () => {
    connection = "reconnecting";
    assert.equal(await isNoted(at("a")), false);
    state.setUsed(true);
    connection = "reconnecting";
    await save(at("a"), 2_000);
  });

  it("is forgotten only after 500 later periods", async () => {
    const earlier = Array.from({ length: 500 }, (_, n) => ({ path: at(String(n)), start: n, end: n }));
    state.keepSaves(earlier);
    await save(at("a"), 1_000_000);
    assert.deepEqual(saves.all, [...earlier.slice(1), { path: at("a"), start: 1_000_000, end: 1_000_000 }]);
  });
});
