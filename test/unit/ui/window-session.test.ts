import assert from "node:assert/strict";
import type { FolderChange, MirroredSession } from "../../../src/engine/folder-changes.ts";
import { ReadModel } from "../../../src/engine/read-model.ts";
import { WindowSession } from "../../../src/ui/folders/window-session.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("the active session of a window", () => {
  let known: ReadModel;
  let session: WindowSession;
  let told: (string | undefined)[];
  let choice: { pickedSession: string | undefined };

  const learn = (...changes: readonly FolderChange[]): void => known.apply(changes);
  const is = (id: string, values: Partial<MirroredSession> = {}): FolderChange => ({
    type: "session",
    id,
    session: {
      id,
      title: id,
      directory: "/work",
      created: 1,
      updated: 1,
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
      task: { kind: "none" },
      ...values,
    },
  });
  const latest = (id: string): FolderChange => ({ type: "latest-session", id });

  function open(picked?: string): void {
    choice = { pickedSession: picked };
    known = new ReadModel(new ManualClock(), strictLogger);
    const ensureSession = async (): Promise<string> => {
      learn(is("new"), latest("new"));
      return "new";
    };
    session = new WindowSession(known, ensureSession, strictLogger, choice);
    told = [];
    session.onDidChange((id) => told.push(id));
  }

  it("is the one in which the user last wrote, else the one updated last", () => {
    open();
    assert.equal(session.id, undefined);
    learn(
      is("a", { updated: 1 }),
      is("b", { updated: 2 }),
      is("task", { updated: 9, task: { kind: "task" } }),
    );
    assert.equal(session.id, "b");
    learn(latest("a"));
    assert.equal(session.id, "a");
    learn(latest("b"));
    assert.deepEqual(told, ["b", "a", "b"]);
    assert.equal(session.session?.title, "b");
    assert.deepEqual(
      session.roots().map(({ id }) => id),
      ["b", "a"],
    );
  });

  it("stays the one the user selected, until they follow the conversation again", () => {
    open();
    learn(is("a"), is("b"), latest("a"));
    session.select("b");
    assert.equal(choice.pickedSession, "b");
    learn(latest("a"));
    assert.equal(session.id, "b");
    session.select(undefined);
    assert.equal(session.id, "a");
    assert.equal(choice.pickedSession, undefined);
  });

  it("is kept, or no longer kept, also if the other choice means the same session at that moment", () => {
    open();
    learn(is("a"), is("b"), latest("a"));
    session.select("a");
    assert.equal(choice.pickedSession, "a");
    session.select(undefined);
    assert.equal(choice.pickedSession, undefined);
    assert.deepEqual(told, ["a"]);
  });

  it("is an earlier selection as soon as it is known, and another one once it is archived", () => {
    open("b");
    learn(is("a"), latest("a"), is("b"));
    assert.equal(session.id, "b");
    learn(is("b", { archived: 5 }));
    assert.equal(session.id, "a");
  });

  it("is created only if there is none", async () => {
    open();
    assert.equal(await session.ensure(), "new");
    assert.equal(session.id, "new");
    open();
    learn(is("a"));
    assert.equal(await session.ensure(), "a");
  });
});
