import assert from "node:assert/strict";
import { Collisions } from "../../../src/engine/collisions.ts";
import type { Entry, TaskRegistry } from "../../../src/engine/registry.ts";
import type { FileUse, PermissionRequest } from "../../../src/engine/server-model.ts";
import type { EngineSettings } from "../../../src/engine/settings.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";

const FILE = "/work/list.txt";

describe("Collisions", () => {
  let collisions: Collisions;
  let setting: EngineSettings["collisions"];
  let entries: ReadonlyMap<string, Entry>;
  let told: Entry[];
  let registry: TaskRegistry;
  let calls = 0;

  beforeEach(() => {
    setting = "block";
    told = [];
    entries = new Map(
      Object.entries({ ses_a: "Alpha", ses_b: "Beta", ses_c: "Gamma" }).map(([id, description]) => [
        id,
        { record: { id, description, status: "running", startedAt: 100 } } as Entry,
      ]),
    );
    registry = {
      entry: (id: string) => entries.get(id),
      progressed: (entry: Entry, apply: () => void) => {
        apply();
        told.push(entry);
      },
      above: (id: string) => new Set(id === "ses_below_a" ? ["ses_a", "ses_user"] : []),
    } as unknown as TaskRegistry;
    start();
  });

  function start(ignoresCase?: boolean): void {
    collisions = new Collisions(registry, () => ({ collisions: setting }) as EngineSettings, ignoresCase);
    for (const sessionID of ["ses_a", "ses_b", "ses_below_a", "ses_user"]) tell(sessionID, undefined);
  }

  /** Reports a tool call like the server. */
  function tell(sessionID: string, files: FileUse | undefined, id = `prt_${calls++}`): void {
    collisions.accept({
      type: "part-changed",
      part: {
        type: "tool",
        id,
        sessionID,
        messageID: "msg_1",
        tool: "some",
        callID: `call_${id}`,
        state: { status: "running", input: {}, start: 1 },
        files,
      },
    });
  }

  const read = (sessionID: string, id?: string): void =>
    tell(sessionID, { access: "read", paths: [FILE] }, id);
  const wrote = (sessionID: string, paths = [FILE]): void => tell(sessionID, { access: "write", paths });
  const begin = (sessionID: string, paths = [FILE]): void => collisions.beginWrite(sessionID, paths);

  function refused(sessionID: string, by: RegExp, paths?: string[]): void {
    assert.throws(() => begin(sessionID, paths), { name: "Refusal", code: "stale-file", message: by });
  }

  it("a change that waits for the user's answer is not allowed once another session has changed its file", () => {
    const asks = (sessionID: string): PermissionRequest => ({
      ...{
        type: "permission",
        id: "per_1",
        permission: "edit",
        patterns: ["*"],
        always: ["*"],
        metadata: {},
      },
      sessionID,
      files: [{ path: "/work/old.txt", movedTo: FILE }],
    });
    const allow = (sessionID: string) => () => collisions.requireUnchanged(asks(sessionID));
    read("ses_a");
    begin("ses_a");
    begin("ses_user");
    // What is only announced may be waiting, too.
    allow("ses_a")();
    wrote("ses_user");
    const told = /^\/work\/list\.txt was changed after this was asked, .* with a message, the agent reads/;
    assert.throws(allow("ses_a"), { name: "Refusal", code: "stale-file", message: told });
    // Whoever announces a write after that.
    read("ses_c");
    begin("ses_c");
    assert.throws(allow("ses_a"), { code: "stale-file" });
    assert.throws(allow("ses_below_a"), { code: "stale-file" });
    wrote("ses_a");
    allow("ses_user")();
    setting = "warn";
    allow("ses_a")();
  });

  it("refuses a write to a file that another task changed since the task read it, and names that task", () => {
    read("ses_a");
    begin("ses_b");
    wrote("ses_b");
    refused("ses_a", /^The task "Beta" changed \/work\/list\.txt after you last read it\. Read it again/);
    refused("ses_a", /list\.txt/, ["/work/new.txt", FILE]);
    read("ses_a");
    begin("ses_a");
    refused("ses_b", /^The task "Alpha" is changing, or was about to change, /);
    wrote("ses_a");
    refused("ses_b", /^The task "Alpha" changed/);
    read("ses_b");
    begin("ses_a");
    refused("ses_b", /^The task "Alpha" is changing, or was about to change, /);
  });

  it("treats a file that was never read as read when the session began", () => {
    wrote("ses_a");
    tell("ses_late", undefined);
    begin("ses_late");
    refused("ses_a", /^Another session is changing, or was about to change, /);
    wrote("ses_late");
    refused("ses_a", /^Another session changed/);
  });

  it("lets a session write again what it wrote itself", () => {
    begin("ses_a");
    wrote("ses_a");
    begin("ses_a");
  });

  it("does not count a read during a write as a read of the result", () => {
    begin("ses_a");
    refused("ses_b", /^The task "Alpha" is changing, or was about to change, \/work\/list\.txt after/);
    read("ses_b");
    wrote("ses_a");
    refused("ses_b", /^The task "Alpha" changed/);
    read("ses_b");
    begin("ses_b");
  });

  it("counts a read from its beginning, even if the server sends it again", () => {
    read("ses_a", "prt_read");
    wrote("ses_b");
    read("ses_a", "prt_read");
    refused("ses_a", /Beta/);
  });

  it("treats descendants of a task as part of it, and does not restrict the user's own sessions", () => {
    wrote("ses_user");
    refused("ses_below_a", /^Another session changed/);
    wrote("ses_below_a");
    begin("ses_user");
    refused("ses_b", /^Another session changed/);
  });

  it("names the task of a writer that is its descendant", () => {
    wrote("ses_below_a");
    refused("ses_b", /^The task "Alpha" changed/);
  });

  it("forgets the sessions that were heard of longest ago, and treats them as new", () => {
    read("ses_a");
    read("ses_c");
    wrote("ses_b");
    for (let number = 0; number < 1_000; number++) {
      tell(`ses_${number}`, undefined);
      if (number === 500) tell("ses_c", undefined);
    }
    refused("ses_c", /^The task "Beta" changed/);
    begin("ses_a");
  });

  for (const other of ["warn", "off"] as const)
    it(`refuses nothing if the setting is "${other}"`, () => {
      setting = other;
      wrote("ses_b");
      begin("ses_a");
    });

  it("where case does not matter, knows a file however its path is written, and shows the path as it was", () => {
    const other = "/Work/List.txt";
    wrote("ses_b", [other]);
    begin("ses_a");
    start(true);
    wrote("ses_b", [other]);
    refused("ses_a", /^The task "Beta" changed \/work\/list\.txt after/);
    read("ses_a");
    begin("ses_a");
    wrote("ses_a", [FILE]);
    wrote("ses_a", [other]);
    assert.deepEqual(marks("ses_a"), [["Beta", [FILE], true]]);
  });

  const entry = (id: string): Entry => {
    const found = entries.get(id);
    assert.ok(found);
    return found;
  };
  const change = (id: string, record: Partial<TaskRecord>): void =>
    void Object.assign(entry(id), { record: { ...entry(id).record, ...record } });
  /** Who else changed a task's files, which files, and whether the collision is new. */
  const marks = (id: string) =>
    entry(id).collisions?.map(({ description, paths, isFirst }) => [description, paths, isFirst]);

  it("marks the second of two tasks that changed a file, and reports the change", () => {
    wrote("ses_a");
    assert.deepEqual(told, []);
    wrote("ses_b");
    assert.deepEqual(marks("ses_b"), [["Alpha", [FILE], true]]);
    assert.deepEqual(told, [entry("ses_b")]);
    assert.equal(marks("ses_a"), undefined);
  });

  it("marks only the first collision of a pair as new, whichever comes second in other files", () => {
    wrote("ses_a");
    wrote("ses_b", [FILE, "/work/own.txt"]);
    wrote("ses_b", ["/work/other.txt"]);
    wrote("ses_a", ["/work/other.txt"]);
    wrote("ses_a", [FILE]);
    wrote("ses_b", ["/work/other.txt"]);
    assert.deepEqual(marks("ses_a"), [["Beta", ["/work/other.txt", FILE], false]]);
    assert.deepEqual(marks("ses_b"), [["Alpha", [FILE, "/work/other.txt"], true]]);
    wrote("ses_c");
    assert.deepEqual(marks("ses_c"), [
      ["Beta", [FILE], true],
      ["Alpha", [FILE], true],
    ]);
  });

  it("reports nothing more when a task changes the same file again", () => {
    wrote("ses_a");
    wrote("ses_b");
    wrote("ses_b");
    assert.deepEqual(told, [entry("ses_b")]);
  });

  it("treats descendants of tasks as part of them, and the user's sessions as no task", () => {
    wrote("ses_a");
    wrote("ses_below_a");
    wrote("ses_user");
    assert.deepEqual(told, []);
    wrote("ses_b");
    assert.deepEqual(marks("ses_b"), [["Alpha", [FILE], true]]);
  });

  it("marks nobody for a write that never happened", () => {
    begin("ses_a");
    setting = "warn";
    wrote("ses_b");
    assert.deepEqual(told, []);
    wrote("ses_a");
    assert.deepEqual(marks("ses_a"), [["Beta", [FILE], true]]);
  });

  it("marks only tasks that ran at the same time", () => {
    wrote("ses_a");
    change("ses_a", { status: "completed", endedAt: 200 });
    change("ses_b", { startedAt: 201 });
    wrote("ses_b");
    assert.deepEqual(told, []);
    wrote("ses_c");
    assert.deepEqual(marks("ses_c"), [
      ["Alpha", [FILE], true],
      ["Beta", [FILE], true],
    ]);
  });

  for (const other of ["warn", "block"] as const)
    it(`marks if the setting is "${other}"`, () => {
      setting = other;
      wrote("ses_a");
      wrote("ses_b");
      assert.deepEqual(marks("ses_b"), [["Alpha", [FILE], true]]);
    });

  it('marks nothing if the setting is "off"', () => {
    setting = "off";
    wrote("ses_a");
    wrote("ses_b");
    assert.deepEqual(told, []);
  });
});
