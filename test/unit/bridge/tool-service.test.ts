import assert from "node:assert/strict";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  FILE_WRITE_PATH,
  TOOL_CALL_PATH,
  toolReply,
  type FileWrite,
  type ToolReply,
} from "../../../src/bridge/tool-call.ts";
import { RETRY_MS, ToolService } from "../../../src/bridge/tool-service.ts";
import { publishEntry, readEntries, type EndpointEntry } from "../../../src/bridge/endpoint-entries.ts";
import { ConnectionError, type ConnectionState } from "../../../src/engine/connection.ts";
import { Emitter } from "../../../src/engine/event.ts";
import { ServerFailure, type Clock } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import type { TaskEngine } from "../../../src/engine/engine.ts";
import { addRunningTasks, memoryEngine } from "../../bench/support/memory-engine.ts";
import { realClock } from "../../support/engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { spawnGroup } from "../../support/process.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

const FIRST = "http://127.0.0.1:4001";
const SECOND = "http://127.0.0.1:4002";
const connected = (url: string): ConnectionState => ({
  kind: "connected",
  url,
  version: "1.18.33",
  own: false,
});
const connecting: ConnectionState = { kind: "connecting", detail: "" };
const reconnecting: ConnectionState = { kind: "reconnecting", reason: "" };
const failure = { code: "unreachable", message: "It is gone.", remedy: "Connect again." } as const;

describe("a window's tools, served to OpenCode", () => {
  let stateFolder: string;
  let directory: string;
  let service: ToolService | undefined;
  let server: MemoryServer;
  let engine: TaskEngine;
  let enabled: boolean;
  let worktrees: readonly string[];
  let errors: string[];
  let writes: FileWrite[];
  let theirs: string[];
  /** In a worktree of another folder. */
  let isolated: string | undefined;
  let clock: Clock;
  let changes: Emitter<void>;
  let state: ConnectionState;
  let connect: (signal?: AbortSignal) => Promise<void>;

  beforeEach(() => {
    stateFolder = join(tempDir("state"), "state");
    directory = tempDir("work");
    server = new MemoryServer();
    engine = memoryEngine(server);
    enabled = true;
    worktrees = [];
    errors = [];
    writes = [];
    theirs = [];
    isolated = undefined;
    clock = realClock;
    changes = new Emitter(() => undefined);
    state = { kind: "disconnected" };
    connect = () => Promise.resolve();
  });

  afterEach(() => {
    service?.dispose();
    engine.dispose();
  });

  const serve = (): void => {
    service = new ToolService({
      connection: {
        get state() {
          return state;
        },
        onDidChange: changes.event,
        connect: (signal) => connect(signal),
      },
      isEnabled: () => enabled,
      known: engine,
      commands: engine,
      beginWrite: (write) => void writes.push(write),
      ownerOf: async (sessionID) => {
        if (sessionID === "ses_unread")
          throw new ServerFailure("GET /session", "unreachable", sentence("No."));
        return sessionID === isolated ? "another" : theirs.includes(sessionID) ? "unknown" : "this";
      },
      directory,
      worktrees: () => worktrees,
      stateFolder,
      clock,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: (message) => void errors.push(message),
      },
    });
  };
  const become = (next: ConnectionState): void => {
    state = next;
    changes.fire();
  };
  const entryFor = (url: string): Promise<EndpointEntry> =>
    until("the entry", async () => (await readEntries(stateFolder)).find((entry) => entry.server === url));
  const noEntry = async (): Promise<void> => assert.deepEqual(await readEntries(stateFolder), []);
  const send = async (path: string, body: object, signal: AbortSignal | null = null): Promise<ToolReply> => {
    const { port, token } = (await readEntries(stateFolder))[0] ?? assert.fail("no entry");
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    return toolReply.parse(JSON.parse((await response.text()).trim()));
  };
  const call = (
    tool: string,
    sessionID: string,
    input: unknown = {},
    signal: AbortSignal | null = null,
    more: object = {},
  ): Promise<ToolReply> =>
    send(TOOL_CALL_PATH, { tool, input, sessionID, messageID: "msg_1", callID: "call_1", ...more }, signal);

  it("can be found once the window is connected, by its server and its folder", async () => {
    serve();
    become(connecting);
    await noEntry();
    become(connected(FIRST));
    assert.deepEqual((await entryFor(FIRST)).directories, [directory]);
    service?.dispose();
    await noEntry();
  });

  it("can be found in the worktrees of the folder, too, as soon as there are any", async () => {
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    worktrees = ["/worktrees/one"];
    service?.update();
    const directories = await until("the new entry", async () => {
      const entries = await readEntries(stateFolder);
      return entries.length === 1 && entries[0]?.directories.length === 2 && entries[0].directories;
    });
    assert.deepEqual(directories, [directory, "/worktrees/one"]);
    service?.dispose();
    await noEntry();
  });

  it("can be found by the real paths of the folder and its worktrees", async () => {
    const real = tempDir("worktrees");
    const link = join(tempDir("links"), "worktrees");
    symlinkSync(real, link);
    mkdirSync(join(real, "one"));
    worktrees = [join(link, "one")];
    serve();
    become(connected(FIRST));
    assert.deepEqual((await entryFor(FIRST)).directories, [directory, join(real, "one")]);
    worktrees = [...worktrees, link];
    service?.update();
    const directories = await until("the new entry", async () => {
      const [entry, ...others] = await readEntries(stateFolder);
      return others.length === 0 && entry?.directories.length === 3 && entry.directories;
    });
    assert.deepEqual(directories, [directory, join(real, "one"), real]);
  });

  it("can be found at once if the window is already connected", async () => {
    state = connected(FIRST);
    serve();
    await entryFor(FIRST);
  });

  it("stay while the connection is restored, and move with it to another address", async () => {
    serve();
    become(connected(FIRST));
    const { port } = await entryFor(FIRST);
    for (const passing of [reconnecting, connecting, connected(FIRST)]) {
      become(passing);
      assert.equal((await readEntries(stateFolder))[0]?.port, port);
    }
    become(connected(SECOND));
    await entryFor(SECOND);
    assert.equal((await readEntries(stateFolder)).length, 1);
  });

  it("are removed when the connection ends", async () => {
    serve();
    for (const end of [{ kind: "disconnected" }, { kind: "failed", failure }] as const) {
      become(connected(FIRST));
      await entryFor(FIRST);
      become(end);
      await noEntry();
    }
  });

  it("are not left behind by a connection that was lost while they opened", async () => {
    serve();
    become(connected(FIRST));
    become({ kind: "disconnected" });
    become(connected(SECOND));
    await entryFor(SECOND);
    assert.equal((await readEntries(stateFolder)).length, 1);
  });

  it("are available only while the settings allow them", async () => {
    enabled = false;
    serve();
    become(connected(FIRST));
    await noEntry();
    enabled = true;
    service?.update();
    await entryFor(FIRST);
    enabled = false;
    service?.update();
    await noEntry();
  });

  it("act on the tasks of the calling session, as its agent", async () => {
    const { parent, tasks } = await addRunningTasks(server, 1);
    await engine.connect();
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    const none = await call("asyncagents_list", "ses_other");
    assert.deepEqual(none, { type: "result", title: "0 tasks", text: "No background tasks found" });
    assert.equal((await call("asyncagents_cancel", parent, { task_id: tasks[0] })).type, "result");
    const task = engine.get(tasks[0] ?? "");
    assert.equal(task?.status, "cancelled");
    // A parent that cancelled a task itself gets no notice.
    assert.equal(task.notice.state, "skipped");
  });

  it("wait until the window is up to date, and say why if that fails", async () => {
    const { parent } = await addRunningTasks(server, 1);
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    connect = () => engine.connect();
    const reply = await call("asyncagents_list", parent);
    assert.ok(reply.type === "result");
    assert.match(reply.text, /module 0/);
    connect = () => Promise.reject(new ConnectionError(failure));
    assert.deepEqual(await call("asyncagents_list", parent), {
      type: "refused",
      message: "It is gone. Connect again.",
    });
  });

  it("do nothing for a call that was given up while the connection was restored", async () => {
    const { parent, tasks } = await addRunningTasks(server, 1);
    await engine.connect();
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    let restore!: () => void;
    const restored = new Promise<void>((resolve) => (restore = resolve));
    let waiting: AbortSignal | undefined;
    connect = (signal) => {
      waiting = signal;
      return restored;
    };
    const caller = new AbortController();
    const given = assert.rejects(call("asyncagents_cancel", parent, { task_id: tasks[0] }, caller.signal));
    const signal = await until("the wait", () => waiting);
    caller.abort();
    await given;
    await until("that the wait is given up", () => signal.aborted);
    restore();
    // Comes after what the first call would have done.
    await call("asyncagents_list", parent);
    assert.equal(engine.get(tasks[0] ?? "")?.status, "running");
  });

  it("leave what a session of another folder asks for to that folder, once they are up to date", async () => {
    const { parent, tasks } = await addRunningTasks(server, 1);
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    connect = async () => {
      await engine.connect();
      theirs = [parent];
    };
    const onlyIfOurs = { onlyIfOurs: true };
    const cancel = (more: object) => call("asyncagents_cancel", parent, { task_id: tasks[0] }, null, more);
    assert.deepEqual(await cancel(onlyIfOurs), { type: "not-ours" });
    assert.equal(engine.get(tasks[0] ?? "")?.status, "running");
    const write = { sessionID: parent, paths: [join(directory, "a.txt")] };
    assert.deepEqual(await send(FILE_WRITE_PATH, { ...write, ...onlyIfOurs }), { type: "not-ours" });
    assert.deepEqual(writes, []);
    assert.equal((await send(FILE_WRITE_PATH, write)).type, "result");
    assert.deepEqual(writes, [write]);
    assert.equal((await cancel({})).type, "result");
    for (const id of ["ses_ours", "ses_unread"])
      assert.equal((await call("asyncagents_list", id, {}, null, onlyIfOurs)).type, "result");
  });

  it("leave what an isolated task of another folder asks for to that one, even if it isn't served", async () => {
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    isolated = "ses_isolated";
    const list = (more: object) => call("asyncagents_list", "ses_isolated", {}, null, more);
    for (const onlyIfOurs of [true, false])
      assert.deepEqual(await list({ onlyIfOurs }), { type: "not-ours" });
    assert.equal((await list({})).type, "result", "a call of an earlier version");
  });

  it("refuse unknown tools", async () => {
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    for (const name of ["asyncagents_future", "toString", "__proto__"]) {
      const reply = await call(name, "ses_1");
      assert.ok(reply.type === "refused");
      assert.match(reply.message, /has no tool/);
    }
  });

  it("remove the entries of windows whose process has ended", async () => {
    const gone = await spawnGroup(process.execPath, ["-e", ""], { env: process.env });
    await until("its end", () => !gone.running);
    const entry = { directories: [], server: SECOND, port: 1, token: "t", pid: gone.pid, openedAt: 0 };
    await publishEntry(stateFolder, entry);
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    await until("one entry", async () => (await readEntries(stateFolder)).length === 1);
  });

  it("try again at the next change if they could not be opened", async () => {
    mkdirSync(join(stateFolder, ".."), { recursive: true });
    writeFileSync(stateFolder, "");
    serve();
    become(connected(FIRST));
    await until("the error", () => errors.length === 1);
    assert.match(errors[0] ?? "", /Couldn't serve/);
    rmSync(stateFolder);
    become(connected(FIRST));
    await entryFor(FIRST);
  });

  it("try again a while later by themselves, unless the connection has ended", async () => {
    const manual = new ManualClock();
    clock = manual;
    mkdirSync(join(stateFolder, ".."), { recursive: true });
    writeFileSync(stateFolder, "");
    serve();
    become(connected(FIRST));
    await until("the error", () => errors.length === 1);
    await manual.advance(RETRY_MS);
    await until("the next one", () => errors.length === 2);
    rmSync(stateFolder);
    await manual.advance(RETRY_MS);
    await entryFor(FIRST);
    assert.equal(manual.pending, 0);
    become({ kind: "disconnected" });
    rmSync(stateFolder, { recursive: true });
    writeFileSync(stateFolder, "");
    become(connected(FIRST));
    await until("the error", () => errors.length === 3);
    assert.equal(manual.pending, 1);
    become({ kind: "disconnected" });
    assert.equal(manual.pending, 0);
  });

  it("try again a while later if new worktrees could not be announced", async () => {
    const manual = new ManualClock();
    clock = manual;
    serve();
    become(connected(FIRST));
    await entryFor(FIRST);
    rmSync(stateFolder, { recursive: true });
    writeFileSync(stateFolder, "");
    worktrees = ["/worktrees/one"];
    service?.update();
    await until("the error", () => errors.length === 1);
    rmSync(stateFolder);
    await manual.advance(RETRY_MS);
    assert.deepEqual((await entryFor(FIRST)).directories, [directory, "/worktrees/one"]);
  });
});
