import assert from "node:assert/strict";
import { realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import * as z from "zod/mini";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import { sessionChanges, type ChangeSource } from "../../../src/opencode/changes.ts";
import { rawMessages } from "../../../src/opencode/file-steps.ts";
import { tempDir } from "../../support/temp.ts";

describe("what a session changed", () => {
  const session = (id: string): Session => ({
    id,
    title: id,
    directory: "/work",
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    permission: [],
    created: 0,
    updated: 1_000,
    task: { kind: "none" },
  });

  /** One turn in which a file was written. */
  const writing = (path: string, at: number) =>
    z.parse(rawMessages, [
      { info: { role: "user", time: { created: 1 } }, parts: [] },
      {
        info: { role: "assistant", time: { created: 2, completed: 900 } },
        parts: [
          {
            type: "tool",
            tool: "write",
            state: {
              status: "completed",
              input: { content: "text\n" },
              metadata: { filepath: path, exists: false },
              time: { end: at },
            },
          },
        ],
      },
    ]);

  const tool = (name: string) => ({ type: "tool", tool: name, state: { status: "completed", input: {} } });

  /** What a task and its subagent changed, given their messages. */
  async function changedWith(turns: Readonly<Record<"ses_own" | "ses_below", readonly object[]>>) {
    const source: ChangeSource = {
      messages: async (id) => z.parse(rawMessages, turns[id as keyof typeof turns]),
      sessions: async () => [session("ses_own"), { ...session("ses_below"), parentID: "ses_own" }],
      statuses: async () => new Map(),
      ignoresCase: false,
    };
    return (await sessionChanges(source, "ses_own", 0)).files;
  }

  it("reads at most four other sessions at a time, and all of them", async () => {
    const others = Array.from({ length: 50 }, (_, index) => `ses_${index}`);
    const read: string[] = [];
    let [reading, most] = [0, 0];
    const source: ChangeSource = {
      async messages(id) {
        if (id === "ses_own") return writing("/work/file", 500);
        most = Math.max(most, ++reading);
        await new Promise(setImmediate);
        reading--;
        read.push(id);
        return writing(id === "ses_49" ? "/work/file" : `/work/${id}`, 600);
      },
      sessions: () => Promise.resolve(["ses_own", ...others].map(session)),
      statuses: () => Promise.resolve(new Map()),
      ignoresCase: false,
    };
    const { files } = await sessionChanges(source, "ses_own", 0);
    assert.ok(most <= 4, `${most} at a time`);
    assert.deepEqual([...read].sort(), [...others].sort());
    assert.deepEqual(
      files.map(({ path, isMixed, mixedWith }) => [path, isMixed, mixedWith]),
      [["/work/file", true, ["ses_49"]]],
    );
  });

  const at = (sessionID: string, path: string, commands: readonly string[]) =>
    z.parse(rawMessages, [
      { info: { role: "user", time: { created: 1 }, summary: { diffs: [] } }, parts: [] },
      {
        info: {
          role: "assistant",
          time: { created: 2, completed: 900 },
          path: { root: "/work", cwd: "/work" },
        },
        parts: [
          { type: "step-start", snapshot: `before ${sessionID}` },
          ...commands.map((tool) => ({ type: "tool", tool, state: { status: "completed", input: {} } })),
          { type: "patch", files: [path] },
        ],
      },
    ]);

  describe("while another session was at work", () => {
    const path = { root: "/work", cwd: "/work" };
    const step = (created: number, name: string) => ({
      info: { role: "assistant", time: { created, completed: created + 5 }, path },
      parts: [
        { type: "step-start", snapshot: "before" },
        tool(name),
        { type: "patch", files: name === "bash" ? ["/work/file"] : [] },
      ],
    });
    const asked = { info: { role: "user", time: { created: 1 }, summary: { diffs: [] } }, parts: [] };

    async function ownAnd(others: (limit?: number) => Promise<readonly object[]>, busy = new Map()) {
      const source: ChangeSource = {
        messages: async (id, limit) =>
          z.parse(rawMessages, id === "ses_own" ? [asked, step(400, "bash")] : await others(limit)),
        sessions: async () => ["ses_own", "ses_other"].map(session),
        statuses: async () => busy,
        ignoresCase: false,
      };
      const { files } = await sessionChanges(source, "ses_own", 0);
      return files.map(({ isDoubtful, isMixed, workedOnBy }) => [isDoubtful, isMixed, ...workedOnBy]);
    }

    it("is doubtful however many messages the other one has had since", async () => {
      const later = Array.from({ length: 1_000 }, (_, index) => step(500 + index, "read"));
      const all = [asked, step(402, "bash"), ...later];
      const limits: (number | undefined)[] = [];
      const files = await ownAnd(async (limit = all.length) => {
        limits.push(limit);
        return all.slice(-limit);
      });
      assert.deepEqual(files, [[true, true]]);
      assert.deepEqual(limits, [200, 1_600]);
    });

    it("is mixed with anything if the other one can't be read, unless it is gone, and fails without a server", async () => {
      const fails = (reason: ServerFailure["reason"], ...busy: readonly string[]) =>
        ownAnd(
          () => Promise.reject(new ServerFailure("read", reason, "Failed.")),
          new Map(busy.map((id) => [id, {}])),
        );
      assert.deepEqual(await fails("unexpected-answer"), [[false, true]]);
      assert.deepEqual(await fails("unexpected-answer", "ses_other"), [[false, true, "ses_other"]]);
      assert.deepEqual(await fails("not-found"), [[false, false]]);
      await assert.rejects(fails("unreachable"), { reason: "unreachable" });
    });
  });

  it("doesn't take a file for created that is older: snapshots had left it out", async () => {
    const folder = realpathSync(tempDir("changes"));
    const [file, other] = [join(folder, ".env"), join(folder, "moved.txt")];
    for (const path of [file, other]) writeFileSync(path, "text\n");
    const diff = (name: string, status: string) => {
      const lines = ["text", "kept", "also kept", status === "deleted" ? "gone" : "new"];
      const line = lines.map((one) => `${status === "deleted" ? "-" : "+"}${one}`).join("\n");
      return { file: name, status, patch: `@@ -1 +1 @@\n${line}\n` };
    };
    const kinds = async (begun: number, ...diffs: readonly object[]) => {
      const messages = [
        { info: { role: "user", time: { created: begun }, summary: { diffs } }, parts: [] },
        {
          info: {
            role: "assistant",
            time: { created: begun, completed: begun + 900 },
            path: { root: folder },
          },
          parts: [
            { type: "step-start", snapshot: "before" },
            tool("bash"),
            { type: "patch", files: [file, other] },
            { type: "step-finish", snapshot: "after" },
          ],
        },
      ];
      const source: ChangeSource = {
        messages: async () => z.parse(rawMessages, messages),
        sessions: async () => [],
        statuses: async () => new Map(),
        ignoresCase: false,
      };
      const { files } = await sessionChanges(source, "ses_own", 0);
      return Object.fromEntries(files.map(({ path, before }) => [basename(path), before.kind]));
    };
    const made = statSync(file).birthtimeMs;
    assert.deepEqual(await kinds(made - 1_000, diff(".env", "added")), { ".env": "absent" });
    assert.deepEqual(await kinds(made + 60_000, diff(".env", "added")), { ".env": "unknown" });
    // What a command moved is as old as before, and has most of its lines.
    const moved = [diff("moved.txt", "added"), diff("old.txt", "deleted")];
    assert.deepEqual(await kinds(made + 60_000, ...moved), { "moved.txt": "absent", "old.txt": "text" });
    const unlike = [diff(".env", "added"), { ...diff("old.txt", "deleted"), patch: "@@ -1 +1 @@\n-20\n" }];
    assert.deepEqual(await kinds(made + 60_000, ...unlike), { ".env": "unknown", "old.txt": "text" });
  });

  it("isn't mixed with what another did that only had a subagent at work", async () => {
    const source = (commands: readonly string[]): ChangeSource => ({
      messages: async (id) =>
        id === "ses_own" ? at(id, "/work/file", ["bash"]) : at(id, "/work/file", commands),
      sessions: async () => ["ses_own", "ses_other"].map(session),
      statuses: async () => new Map(),
      ignoresCase: false,
    });
    const mixed = async (...commands: readonly string[]) =>
      (await sessionChanges(source(commands), "ses_own", 0)).files.map(({ mixedWith }) => mixedWith);
    assert.deepEqual(await mixed("task"), [[]]);
    assert.deepEqual(await mixed("task", "bash"), [["ses_other"]]);
  });

  it("isn't mixed with a step of another that was killed with its server, once that went on", async () => {
    const parts = [
      { type: "step-start", snapshot: "before" },
      tool("bash"),
      { type: "patch", files: ["/work/file"] },
    ];
    const path = { root: "/work", cwd: "/work" };
    const step = (created: number, completed?: number) => ({
      info: { role: "assistant", time: { created, completed }, path },
      parts,
    });
    const asked = { info: { role: "user", time: { created: 1 }, summary: { diffs: [] } }, parts: [] };
    const mixed = async (...others: readonly object[]) => {
      const source: ChangeSource = {
        messages: async (id) =>
          z.parse(rawMessages, [asked, ...(id === "ses_own" ? [step(400, 900)] : others)]),
        sessions: async () => ["ses_own", "ses_other"].map(session),
        statuses: async () => new Map(),
        ignoresCase: false,
      };
      return (await sessionChanges(source, "ses_own", 0)).files.map(({ mixedWith }) => mixedWith);
    };
    assert.deepEqual(await mixed(step(100)), [["ses_other"]]);
    assert.deepEqual(await mixed(step(100), step(200, 300)), [[]]);
  });

  for (const ignoresCase of [true, false])
    it(`is ${ignoresCase ? "" : "not "}known of a file that another wrote under a name of other letter case`, async () => {
      const source: ChangeSource = {
        messages: async (id) =>
          id === "ses_own" ? at(id, "/work/cart.ts", ["bash"]) : writing("/work/Cart.ts", 500),
        sessions: async () => ["ses_own", "ses_other"].map(session),
        statuses: async () => new Map(),
        ignoresCase,
      };
      const { files } = await sessionChanges(source, "ses_own", 0);
      assert.deepEqual(
        files.map(({ path }) => path),
        ignoresCase ? [] : ["/work/cart.ts"],
      );
    });

  it("isn't mixed because one subagent only read while another one wrote, and has nothing that is undone", async () => {
    const child = (id: string): Session => ({ ...session(id), parentID: "ses_own" });
    const step = (tools: readonly object[], files: readonly string[], isDone = false) => ({
      info: {
        role: "assistant",
        time: { created: 2, completed: 900 },
        path: { root: "/work", cwd: "/work" },
      },
      parts: [
        { type: "step-start", snapshot: "before" },
        ...tools,
        ...(isDone ? [{ type: "step-finish", snapshot: "after" }] : []),
        { type: "patch", files },
      ],
    });
    const asked = (diffs: readonly object[]) => ({
      info: { role: "user", time: { created: 1 }, summary: { diffs } },
      parts: [],
    });
    const [, answer] = writing("/work/a", 500);
    const [, scratch] = writing("/work/scratch", 500);
    const turns: Record<string, object[]> = {
      ses_own: [
        asked([]),
        step([tool("task")], ["/work/scratch"], true),
        step([tool("bash")], ["/work/scratch"], true),
      ],
      ses_writes: [
        asked([]),
        step([...(answer?.parts ?? []), ...(scratch?.parts ?? [])] as object[], ["/work/a"]),
      ],
      ses_reads: [asked([]), step([tool("read")], ["/work/a"])],
    };
    const source: ChangeSource = {
      messages: async (id) => z.parse(rawMessages, turns[id]),
      sessions: async () => [session("ses_own"), child("ses_writes"), child("ses_reads")],
      statuses: async () => new Map(),
      ignoresCase: false,
    };
    const { files } = await sessionChanges(source, "ses_own", 0);
    assert.deepEqual(
      files.map(({ path, isMixed }) => [path, isMixed]),
      [["/work/a", false]],
    );
  });

  describe("in a step that has just ended", () => {
    const patch = (at: number, diffs: readonly object[]) =>
      z.parse(rawMessages, [
        { info: { role: "user", time: { created: 1 }, summary: { diffs } }, parts: [] },
        {
          info: { role: "assistant", time: { created: 2, completed: at }, path: { root: "/work" } },
          parts: [
            { type: "step-start", snapshot: "before" },
            { ...tool("bash") },
            { type: "step-finish", snapshot: "after" },
            { type: "patch", files: ["/work/made.txt"] },
          ],
        },
      ]);
    const diff = {
      file: "made.txt",
      status: "added",
      additions: 1,
      deletions: 0,
      patch: "@@ -0,0 +1 @@\n+made\n",
    };

    async function read(...answers: readonly ReturnType<typeof patch>[]) {
      let reads = 0;
      const source: ChangeSource = {
        messages: async () => answers[Math.min(reads++, answers.length - 1)] ?? [],
        sessions: async () => [session("ses_own")],
        statuses: async () => new Map(),
        ignoresCase: false,
      };
      const { files } = await sessionChanges(source, "ses_own", 0);
      return { paths: files.map(({ path }) => path), reads };
    }

    it("is read again until the server has summed it up", async () => {
      const now = Date.now();
      assert.deepEqual(await read(patch(now, []), patch(now, [diff])), {
        paths: ["/work/made.txt"],
        reads: 2,
      });
    });

    it("isn't waited for if the step ended long ago, or nothing is missing", async () => {
      const now = Date.now();
      assert.equal((await read(patch(now - 60_000, []), patch(now, [diff]))).reads, 1);
      assert.equal((await read(patch(now, [diff]))).reads, 1);
    });

    it("is given up after seconds, as it may have been undone", async () => {
      const { paths, reads } = await read(patch(Date.now() - 2_800, []));
      assert.deepEqual(paths, []);
      assert.ok(reads > 1 && reads < 5, `${reads} reads`);
    });
  });

  it("is mixed with what the user saved between the turns that changed a file, however the path is written", async () => {
    const source: ChangeSource = {
      messages: async () => writing("/work/A.txt", 500),
      sessions: async () => [session("ses_own")],
      statuses: async () => new Map(),
      ignoresCase: true,
    };
    const isMixed = async (path: string, start: number, end: number): Promise<boolean | undefined> =>
      (await sessionChanges(source, "ses_own", 0, [{ path, start, end }])).files[0]?.isMixed;
    assert.equal(await isMixed("/work/a.txt", 600, 600), true);
    assert.equal(await isMixed("/work/a.txt", 0, 5_000), true);
    assert.equal(await isMixed("/work/a.txt", 901, 5_000), false);
    assert.equal(await isMixed("/work/a.txt", 0, 1), false);
    assert.equal(await isMixed("/work/b.txt", 600, 600), false);
  });

  it("is mixed with what changed a file while a subagent did something else", async () => {
    const step = (
      created: number,
      completed: number,
      tools: readonly object[],
      files: readonly string[],
    ) => ({
      info: { role: "assistant", time: { created, completed }, path: { root: "/work", cwd: "/work" } },
      parts: [{ type: "step-start", snapshot: "before" }, ...tools, { type: "patch", files }],
    });
    const asked = { info: { role: "user", time: { created: 1 }, summary: { diffs: [] } }, parts: [] };
    const written = (path: string, at: number): object[] => writing(path, at)[1]?.parts as object[];
    const call = { type: "tool", tool: "task", state: { status: "completed", input: {} } };
    const files = await changedWith({
      ses_own: [asked, step(2, 900, [call], ["/work/a", "/work/b"])],
      ses_below: [
        asked,
        step(10, 20, written("/work/a", 15), ["/work/a"]),
        step(30, 40, written("/work/b", 35), ["/work/a", "/work/b"]),
      ],
    });
    assert.deepEqual(
      files.map(({ path, isMixed }) => [path, isMixed]),
      [
        ["/work/a", true],
        ["/work/b", false],
      ],
    );
  });

  it("has what a subagent wrote after the same file had been changed and restored", async () => {
    const step = (
      created: number,
      completed: number | undefined,
      tools: readonly object[],
      isDone: boolean,
    ) => ({
      info: { role: "assistant", time: { created, completed }, path: { root: "/work", cwd: "/work" } },
      parts: [
        { type: "step-start", snapshot: "before" },
        ...tools,
        ...(isDone
          ? [
              { type: "step-finish", snapshot: "after" },
              { type: "patch", files: ["/work/a"] },
            ]
          : []),
      ],
    });
    const asked = (created: number) => ({
      info: { role: "user", time: { created }, summary: { diffs: [] } },
      parts: [],
    });
    const [, answer] = writing("/work/a", 500);
    const files = await changedWith({
      ses_own: [
        asked(1),
        step(2, 100, [tool("bash")], true),
        asked(200),
        step(201, undefined, [tool("task")], false),
      ],
      ses_below: [asked(300), step(301, 900, answer?.parts as object[], false)],
    });
    assert.deepEqual(
      files.map(({ path }) => path),
      ["/work/a"],
    );
  });

  it("reads at most four of its subagents at a time", async () => {
    let [reading, most] = [0, 0];
    const calls = z.parse(rawMessages, [
      { info: { role: "user", time: { created: 1 } }, parts: [] },
      {
        info: { role: "assistant", time: { created: 2, completed: 900 } },
        parts: [{ type: "tool", tool: "task", state: { status: "completed", input: {} } }],
      },
    ]);
    const source: ChangeSource = {
      async messages(id) {
        if (id === "ses_own") return calls;
        most = Math.max(most, ++reading);
        await new Promise(setImmediate);
        reading--;
        return writing(`/work/${id}`, 600);
      },
      sessions: async () => [
        session("ses_own"),
        ...Array.from({ length: 20 }, (_, index) => ({ ...session(`ses_${index}`), parentID: "ses_own" })),
      ],
      statuses: async () => new Map(),
      ignoresCase: false,
    };
    assert.equal((await sessionChanges(source, "ses_own", 0)).files.length, 20);
    assert.equal(most, 4);
  });

  it("includes what its subagents wrote, also without snapshots, but not what its tasks did", async () => {
    const child = (id: string, parentID: string): Session => ({ ...session(id), parentID });
    const task: Session = { ...child("ses_task", "ses_own"), task: { kind: "unreadable", reason: "" } };
    const calls = z.parse(rawMessages, [
      { info: { role: "user", time: { created: 1 } }, parts: [] },
      {
        info: { role: "assistant", time: { created: 2, completed: 900 } },
        parts: [{ type: "tool", tool: "task", state: { status: "completed", input: {} } }],
      },
    ]);
    const source: ChangeSource = {
      messages: async (id) => (id === "ses_own" || id === "ses_below" ? calls : writing(`/work/${id}`, 500)),
      sessions: async () => [
        session("ses_own"),
        child("ses_below", "ses_own"),
        child("ses_deep", "ses_below"),
        task,
      ],
      statuses: async () => new Map(),
      ignoresCase: false,
    };
    const { files } = await sessionChanges(source, "ses_own", 0);
    assert.deepEqual(
      files.map(({ path, isMixed }) => [path, isMixed]),
      [["/work/ses_deep", false]],
    );
  });
});
