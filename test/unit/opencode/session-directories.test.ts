import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { OpenCodeAgentServer } from "../../../src/opencode/agent-server.ts";
import type { ServerClient } from "../../../src/opencode/client.ts";
import { encodeRecord, RECORD_KEY } from "../../../src/opencode/record-codec.ts";
import { SessionDirectories } from "../../../src/opencode/session-directories.ts";
import { record } from "../engine/builders.ts";

const FOLDER = "/shop";
const WORKTREE = "/shop.worktrees/one";

function session(id: string, directory: string, parentID?: string, task?: Partial<TaskRecord>): Session {
  return {
    id,
    title: id,
    directory,
    parentID,
    created: 0,
    updated: 0,
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    permission: [],
    task: task ? { kind: "task", record: { status: "completed", ...task } as TaskRecord } : { kind: "none" },
  };
}

const isolated = (id: string, parentID?: string, task: Partial<TaskRecord> = {}): Session =>
  session(id, WORKTREE, parentID, { worktree: { name: "one", directory: WORKTREE, base: "abc" }, ...task });

describe("the directories of sessions", () => {
  let used: string[];
  let released: string[];
  let directories: SessionDirectories;

  beforeEach(() => {
    used = [];
    released = [];
    directories = new SessionDirectories({
      onUse: (directory) => void used.push(directory),
      onRelease: async (directory) => void released.push(directory),
    });
    directories.setFolder(FOLDER);
  });

  const ours = (...sessions: readonly Session[]): readonly string[] =>
    directories.ours(sessions).map(({ id }) => id);

  it("a worktree that the server refuses to load has nothing, but any other failure counts", async () => {
    directories.use(WORKTREE);
    const at = (failing: string | undefined, status: number) =>
      directories.everywhere(async (directory) => {
        if (directory === failing) throw new ServerFailure("GET", "refused", "No.", status);
        return directory ?? FOLDER;
      });
    assert.deepEqual(await at("/nowhere", 400), [FOLDER, WORKTREE]);
    assert.deepEqual(await at(WORKTREE, 400), [FOLDER]);
    await assert.rejects(at(WORKTREE, 500), { status: 500 });
    await assert.rejects(at(undefined, 400), { status: 400 });
  });

  it("the folder's sessions are those in it, its isolated tasks, and what was launched in their worktrees", () => {
    const listed = [
      session("inner", WORKTREE, "task"),
      isolated("task", "parent"),
      session("parent", FOLDER),
      session("own", WORKTREE),
      session("below own", WORKTREE, "own"),
      session("elsewhere", "/other"),
      session("moved", "/other", "parent"),
    ];
    assert.deepEqual(ours(...listed), ["inner", "task", "parent"]);
    assert.equal(directories.of("inner"), WORKTREE);
    assert.equal(directories.of("parent"), undefined);
    assert.equal(directories.of("unknown"), undefined);
  });

  it("an isolated task whose record can't be read belongs to the folder, with what it launched", () => {
    const unreadable: Session = {
      ...session("ses_task", WORKTREE, "ses_root"),
      task: { kind: "unreadable", reason: "It is of a later version." },
    };
    const below = session("ses_below", WORKTREE, "ses_task");
    const root = session("ses_root", FOLDER);
    assert.deepEqual(ours(root, unreadable, below), ["ses_root", "ses_task", "ses_below"]);
    directories = new SessionDirectories();
    directories.setFolder(WORKTREE);
    assert.deepEqual(ours(root, unreadable, below), []);
  });

  it("a worktree that is opened as a folder has none of the tasks that it was made for", () => {
    directories.setFolder(WORKTREE);
    const listed = [isolated("task", "parent"), session("inner", WORKTREE, "task"), session("own", WORKTREE)];
    assert.deepEqual(ours(session("parent", FOLDER), ...listed), ["own"]);
    assert.deepEqual(ours(...listed), ["own"]);
  });

  it("a fork that only its record links to its parent belongs to the folder; a circle of parents ends", () => {
    const fork = isolated("fork", undefined, { parentSessionID: "parent" });
    assert.deepEqual(ours(fork, session("parent", FOLDER)), ["fork", "parent"]);
    assert.deepEqual(ours(session("a", WORKTREE, "b"), session("b", WORKTREE, "a")), []);
  });

  it("a session that isn't known yet is read, with its parents, to tell whether it belongs to the folder", async () => {
    const server = new Map(
      [
        session("below own", WORKTREE, "own"),
        session("own", WORKTREE),
        session("below inner", WORKTREE, "inner"),
        session("inner", WORKTREE, "task"),
        session("root", FOLDER),
        isolated("others", "theirs"),
        session("theirs", "/elsewhere"),
        session("below others", WORKTREE, "others"),
        session("a", WORKTREE, "b"),
        session("b", WORKTREE, "a"),
      ].map((one) => [one.id, one]),
    );
    const read: string[] = [];
    const ownerOf = (id: string) =>
      directories.ownerOf(id, async (asked) => {
        read.push(asked);
        return server.get(asked);
      });
    ours(isolated("task", "parent"), session("parent", FOLDER));
    assert.deepEqual([await ownerOf("task"), await ownerOf("parent"), read], ["this", "this", []]);
    const found: Record<string, string> = {};
    for (const id of ["below inner", "below own", "below others", "root", "a", "none"])
      found[id] = await ownerOf(id);
    assert.deepEqual(found, {
      "below inner": "this",
      "below own": "unknown",
      "below others": "another",
      root: "this",
      a: "unknown",
      none: "unknown",
    });
    read.length = 0;
    assert.deepEqual([await ownerOf("inner"), await ownerOf("others"), read], ["this", "another", []]);
  });

  it("a worktree is used while something may be running in it", async () => {
    ours(session("parent", FOLDER), isolated("ended", "parent"));
    assert.deepEqual(directories.used(), []);
    ours(session("parent", FOLDER), isolated("running", "parent", { status: "running" }));
    directories.use(WORKTREE);
    directories.use(FOLDER);
    assert.deepEqual([directories.used(), used], [[WORKTREE], [WORKTREE]]);
    await directories.release(WORKTREE);
    assert.deepEqual([directories.used(), released], [[], [WORKTREE]]);
  });

  it("a worktree that the server doesn't release stays in use", async () => {
    directories = new SessionDirectories({
      onUse: (directory) => void used.push(directory),
      onRelease: () => Promise.reject(new Error("No.")),
    });
    directories.setFolder(FOLDER);
    directories.use(WORKTREE);
    await assert.rejects(directories.release(WORKTREE), /No\./);
    assert.deepEqual([directories.used(), used], [[WORKTREE], [WORKTREE, WORKTREE]]);
  });

  it("events of sessions that do not belong to the folder are ignored", () => {
    ours(session("parent", FOLDER));
    const changed = (one: Session) => directories.accepts({ type: "session-changed", session: one }, one.id);
    const idle = (sessionID: string) =>
      directories.accepts({ type: "session-status", sessionID, status: { type: "idle" } }, sessionID);
    assert.deepEqual([changed(isolated("task", "parent")), idle("task")], [true, true]);
    assert.deepEqual([changed(session("own", WORKTREE)), idle("own")], [false, false]);
    assert.ok(idle("not seen yet"));
    assert.ok(directories.accepts({ type: "session-deleted", sessionID: "task" }, "task"));
    assert.equal(directories.of("task"), undefined);
  });

  it("a task that isn't listed any more is found in its worktree, where the server is asked and heard", async () => {
    const worktree = { name: "one", directory: WORKTREE, base: "0".repeat(40) };
    const running = record({ id: "ses_task", parentSessionID: "ses_parent", status: "running", worktree });
    const stored = (id: string, directory: string, facts: object = {}) => ({
      ...{ id, directory, title: id, time: { created: 1, updated: 1 } },
      ...facts,
    });
    const metadata = { [RECORD_KEY]: encodeRecord(running) };
    const sessions: Readonly<Record<string, unknown>> = {
      ses_parent: stored("ses_parent", FOLDER),
      ses_task: stored("ses_task", WORKTREE, { parentID: "ses_parent", metadata }),
      get ses_inner() {
        const metadata = { [RECORD_KEY]: encodeRecord(innerRecord) };
        return stored("ses_inner", inner, { parentID: "ses_task", metadata });
      },
    };
    const inner = "/shop.worktrees/two";
    const innerWorktree = { name: "two", directory: inner, base: "0".repeat(40) };
    const innerRecord = record({
      ...running,
      id: "ses_inner",
      parentSessionID: "ses_task",
      worktree: innerWorktree,
    });
    let isParentRefused = true;
    const asked: (string | undefined)[] = [];
    const client: ServerClient = {
      folder: { directory: FOLDER, isInRepository: true },
      request: async (_, { url, path, directory }) => {
        if (path?.["sessionID"] === "ses_parent" && isParentRefused) throw new Error("Not now.");
        if (url === "/session/status") asked.push(directory);
        const data =
          url === "/session/{sessionID}"
            ? sessions[String(path?.["sessionID"])]
            : url === "/session"
              ? []
              : {};
        return { data, response: new Response() };
      },
    };
    const server = new OpenCodeAgentServer(
      () => client,
      () => ({ dispose: () => undefined }),
      undefined,
      directories,
    );
    assert.deepEqual(await server.sessions(), []);
    await assert.rejects(server.session("ses_task"));
    assert.deepEqual(used, []);
    isParentRefused = false;
    // Also one that was launched in it.
    const found = await Promise.all(["ses_task", "ses_inner"].map((id) => server.session(id)));
    assert.deepEqual(
      found.map((one) => one?.task.kind),
      ["task", "task"],
    );
    assert.deepEqual([...used].sort(), [WORKTREE, inner]);
    assert.equal(await server.ownerOf("ses_inner"), "this");
    await server.statuses();
    assert.deepEqual(asked.sort(), [WORKTREE, inner, undefined]);
  });
});
