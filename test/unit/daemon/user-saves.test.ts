import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StateFile } from "../../../src/daemon/state-files.ts";
import { UserSaves } from "../../../src/daemon/user-saves.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";

describe("what the user saves", () => {
  let folder: string;
  let state: StateFile;
  let saves: UserSaves;

  const open = (): Promise<StateFile> =>
    StateFile.open("/work", { stateFolder: folder, clock: new ManualClock(), logger: strictLogger });
  const at = (name: string): string => join(folder, "src", name);

  beforeEach(async () => {
    folder = tempDir("saves");
    mkdirSync(join(folder, "src"));
    for (const name of ["a", "b"]) writeFileSync(at(name), "");
    state = await open();
    saves = new UserSaves(state);
  });

  it("is remembered with its time, also by the next daemon", async () => {
    await saves.note(at("a"), 1_000, [folder]);
    await saves.note(at("b"), 2_000, [folder]);
    await state.close();
    assert.deepEqual(new UserSaves(await open()).all, [
      { path: at("a"), start: 1_000, end: 1_000 },
      { path: at("b"), start: 2_000, end: 2_000 },
    ]);
  });

  it("counts as one period while it is saved again and again", async () => {
    for (const time of [1_000, 9_000, 18_000, 60_000]) await saves.note(at("a"), time, [folder]);
    assert.deepEqual(saves.all, [
      { path: at("a"), start: 1_000, end: 18_000 },
      { path: at("a"), start: 60_000, end: 60_000 },
    ]);
  });

  it("is the same file if it was opened through a link", async function () {
    if (process.platform === "win32") return this.skip();
    symlinkSync(join(folder, "src"), join(folder, "link"));
    await saves.note(join(folder, "link", "a"), 1_000, [join(folder, "src")]);
    assert.equal(saves.all[0]?.path, at("a"));
  });

  it("isn't remembered where no agent works", async () => {
    await saves.note(join(folder, "notes"), 1_000, [join(folder, "src"), "/elsewhere"]);
    assert.deepEqual(saves.all, []);
  });

  it("is forgotten only after 500 later periods", async () => {
    for (let n = 0; n <= 500; n++) await saves.note(at(String(n)), n * 60_000, [folder]);
    assert.equal(saves.all.length, 500);
    assert.equal(saves.all[0]?.path, at("1"));
  });
});
