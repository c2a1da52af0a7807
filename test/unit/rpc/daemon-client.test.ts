import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectionError } from "../../../src/engine/connection.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import type { ConversationMessage } from "../../../src/protocol/output.ts";
import {
  PROTOCOL_VERSION,
  type Conversation,
  type Environment,
  type FolderChange,
  type FolderClient,
} from "../../../src/rpc/contract.ts";
import { DaemonClient, type DaemonState } from "../../../src/rpc/daemon-client.ts";
import { listenExclusively, writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles } from "../../../src/rpc/daemon-files.ts";
import { EXIT_ALREADY_SERVED, LISTENING } from "../../../src/rpc/daemon-program.ts";
import { DaemonServer } from "../../../src/rpc/daemon-server.ts";
import { OtherProtocol } from "../../../src/rpc/failures.ts";
import { AnsweringWire } from "../../../src/rpc/answering-wire.ts";
import { systemClock } from "../../../src/rpc/clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { daemonEntry, FakeHost, FakeService, folder, settings, silentLogger } from "./fake-host.ts";

const tsx = import.meta.resolve("tsx");

describe("A window's connection to the daemon", () => {
  let stateFolder: string;
  let clock: ManualClock;
  const held: { dispose(): void }[] = [];

  beforeEach(() => {
    stateFolder = join(tempDir("rpc"), "state");
    clock = new ManualClock();
  });

  afterEach(async () => {
    for (const each of held.splice(0).reverse()) each.dispose();
    const left = existsSync(stateFolder) && (await new DaemonFiles(stateFolder).read());
    if (left && left.pid !== process.pid) process.kill(left.pid, "SIGKILL");
  });

  /** A daemon in this process. */
  async function serve(host = new FakeHost(), version = "1.2.0"): Promise<DaemonServer> {
    const options = { stateFolder, host, version, clock: new ManualClock(), logger: silentLogger };
    const server = await DaemonServer.open(options);
    assert.ok(server);
    held.push(server);
    return server;
  }

  /** A client that starts this program as its daemon; by default the program doesn't exist. */
  function client(script = "/no/program", version = "1.2.0", env = process.env as Environment) {
    const { execPath } = process;
    const options = { stateFolder, execPath, script, env, version, clock, logger: silentLogger };
    const made = new DaemonClient(options);
    held.push(made);
    const states: DaemonState["kind"][] = [];
    made.onDidChangeState(({ kind }) => states.push(kind));
    return { client: made, states };
  }

  async function whileTimePasses<T>(answer: Promise<T>): Promise<T> {
    let isSettled = false;
    const settles = answer.finally(() => (isSettled = true));
    settles.catch(() => undefined);
    await until("the answer", async () => {
      await clock.advance(50);
      return isSettled;
    });
    return settles;
  }

  function script(text: string): string {
    const path = join(tempDir("rpc"), "daemon.cjs");
    writeFileSync(path, text);
    return path;
  }

  /** A short form of the changes that a folder reports. */
  function follow(opened: FolderClient) {
    const changes: FolderChange[] = [];
    opened.onDidChange((more) => changes.push(...more));
    const told = () =>
      changes.map((change) => {
        if (change.type === "connection") return change.state.kind;
        if (change.type === "reset") return `reset ${change.snapshot.latestSessionID}`;
        return change.type === "latest-session" ? change.id : change.type;
      });
    return { changes, told };
  }

  it("begins with the first folder, which begins with a full snapshot", async () => {
    const service = new FakeService();
    service.change("ses_1");
    await serve(new FakeHost(service));
    const { client: window, states } = client();
    await clock.advance(60_000);
    assert.deepEqual(states, []);
    const { told } = follow(window.open(folder()));
    await until("the folder to be open", () => told().length > 0);
    assert.deepEqual(told(), ["reset ses_1"]);
    assert.deepEqual(states, ["connected"]);
  });

  it("finds OpenCode through the daemon, in this program's environment", async () => {
    await serve();
    const { client: window } = client("/no/program", "1.2.0", { PATH: "/bin" });
    assert.equal(await window.findExecutable(undefined), "/bin/opencode");
    assert.equal(await window.findExecutable("/own/opencode"), "/own/opencode");
    assert.equal(await window.installCommand(false), "install");
    assert.equal(await window.installCommand(true), undefined);
  });

  it("loses no change that happens before the first answer arrives", async () => {
    const service = new FakeService();
    const snapshot = service.snapshot.bind(service);
    service.snapshot = () => {
      queueMicrotask(() => {
        service.change("ses_1");
        service.flush();
      });
      return snapshot();
    };
    await serve(new FakeHost(service));
    const { told } = follow(client().client.open(folder()));
    await until("the change", () => told().length === 2);
    assert.deepEqual(told(), ["reset undefined", "ses_1"]);
  });

  it("carries out calls, and reports what they changed before the answer", async () => {
    const service = new FakeService({
      ensureSession: async () => {
        service.change("ses_2");
        return "ses_2";
      },
      lastAnswer: async () => undefined,
    });
    await serve(new FakeHost(service));
    const opened = client().client.open(folder());
    const { told } = follow(opened);
    assert.equal(await opened.calls.ensureSession(), "ses_2");
    assert.deepEqual(told(), ["reset undefined", "ses_2"]);
    assert.equal(await opened.calls.lastAnswer("ses_2"), undefined);
  });

  it("opens folders with the latest settings", async () => {
    const host = new FakeHost();
    const server = await serve(host);
    const opened = client().client.open(folder());
    const { told } = follow(opened);
    await until("the folder to be open", () => told().length === 1);
    const watched = { ...settings, watched: true };
    opened.configure(watched);
    await until("the settings to be there", () => host.configured.length === 1);
    assert.deepEqual(host.configured, [watched]);
    server.dispose();
    await until("the connection to be lost", () => told().length === 2);
    await serve(host);
    await clock.advance(0);
    await until("the folder to be open again", () => told().length === 3);
    assert.deepEqual(host.opened.at(-1)?.settings, watched);
  });

  it("shares a folder among those that open its directory, each with a snapshot, until the last one leaves", async () => {
    const host = new FakeHost(new FakeService({ models: async () => [] }));
    await serve(host);
    const { client: window } = client();
    const one = window.open(folder());
    const first = follow(one);
    await until("the folder to be open", () => first.told().length === 1);
    host.service.change("ses_1");
    const watched = { ...settings, watched: true };
    const other = window.open({ ...folder(), settings: watched });
    const second = follow(other);
    await until("the other snapshot", () => second.told().length > 0);
    assert.deepEqual(second.told(), ["reset ses_1"]);
    assert.deepEqual(await one.calls.models(), []);
    assert.equal(first.told().at(-1), "reset ses_1");
    assert.deepEqual(host.opened.at(-1)?.settings, watched);
    const { closed } = host;
    one.dispose();
    assert.deepEqual(await other.calls.models(), []);
    host.service.change("ses_2");
    host.service.flush();
    await until("the change", () => second.told().includes("ses_2"));
    assert.equal(host.closed, closed);
    other.dispose();
    await until("the folder to be closed", () => host.closed === closed + 1);
    const again = follow(window.open(folder()));
    await until("the folder to be open again", () => again.told().length === 1);
  });

  it("sends the tasks that an earlier version stored to the daemon once", async () => {
    const host = new FakeHost();
    const server = await serve(host);
    const kept = {
      tombstones: [{ id: "ses_1", description: "Gone", parentSessionID: "ses_0" }],
      unsettled: [{ id: "ses_2", revision: 3 } as TaskRecord],
    };
    const { told } = follow(client().client.open({ ...folder(), kept }));
    await until("the folder to be open", () => told().length === 1);
    server.dispose();
    await until("the connection to be lost", () => told().length === 2);
    await serve(host);
    await clock.advance(0);
    await until("the folder to be open again", () => told().length === 3);
    assert.deepEqual(
      host.opened.map((opened) => opened.kept),
      [kept, undefined],
    );
  });

  it("is restored after the daemon crashed, and folders begin with a snapshot again", async () => {
    let joined = 0;
    const service = new FakeService({ join: async () => void joined++ });
    const server = await serve(new FakeHost(service));
    const { client: window, states } = client();
    const { told, changes } = follow(window.open(folder()));
    await until("the folder to be open", () => told().length === 1);
    server.dispose();
    await until("the connection to be lost", () => told().length === 2);
    assert.deepEqual(changes[1], {
      type: "connection",
      state: {
        kind: "reconnecting",
        reason: sentence("The connection to the background process was lost."),
      },
    });
    service.change("ses_3");
    await serve(new FakeHost(service));
    await clock.advance(0);
    await until("the folder to be open again", () => told().length === 3);
    assert.deepEqual(told(), ["reset undefined", "reconnecting", "reset ses_3"]);
    // The folder's server kept running.
    await until("it to be joined", () => joined === 1);
    assert.deepEqual(states, ["connected", "connecting", "connected"]);
  });

  it("repeats harmless calls when the daemon crashes, and says of the others that the task should be checked", async () => {
    let asked = 0;
    const never = (): Promise<never> => {
      asked++;
      return new Promise(() => undefined);
    };
    const server = await serve(new FakeHost(new FakeService({ models: never, retry: never, launch: never })));
    const { calls } = client().client.open(folder());
    const input = { prompt: "Do it.", parentSessionID: "ses_1", launchedBy: "agent" } as const;
    const lost = [calls.retry("ses_1"), calls.launch(input)].map((call) =>
      call.then(
        () => assert.fail("It was answered."),
        (error: unknown) => error,
      ),
    );
    const repeated = [calls.models(), calls.launch({ ...input, callID: "call_1" })];
    await until("all to be asked", () => asked === 4);
    server.dispose();
    for (const error of await Promise.all(lost)) {
      assert.ok(error instanceof ServerFailure);
      assert.equal(error.reason, "unreachable");
      assert.match(error.message, /Check the task before you try again/);
    }
    // A call without a connection waits for one.
    const waiting = calls.retry("ses_2");
    await serve(
      new FakeHost(
        new FakeService({
          models: async () => [],
          launch: async ({ callID }) => ({ id: callID }) as never,
          retry: async (id) => ({ id }) as never,
        }),
      ),
    );
    await clock.advance(0);
    assert.deepEqual(await Promise.all([...repeated, waiting]), [[], { id: "call_1" }, { id: "ses_2" }]);
  });

  it("repeats what was asked about all folders when the daemon crashes, but stops no work twice", async () => {
    const host = new FakeHost();
    let asked = 0;
    const never = (): Promise<never> => {
      asked++;
      return new Promise(() => undefined);
    };
    Object.assign(host, { status: never, diagnostics: never, findExecutable: never, stop: never });
    const server = await serve(host);
    const { client: window } = client();
    const stopped = assert.rejects(window.stop(["/work"]), { name: "ServerFailure", reason: "unreachable" });
    const repeated = [window.status(), window.diagnostics(), window.findExecutable("/own/opencode")];
    await until("all to be asked", () => asked === 4);
    server.dispose();
    await stopped;
    const next = new FakeHost();
    await serve(next);
    await clock.advance(0);
    assert.deepEqual(await Promise.all(repeated), [
      { folders: [], pid: process.pid, startedAt: 1 },
      {},
      "/own/opencode",
    ]);
    assert.deepEqual(next.stopped, []);
  });

  it("lets callers cancel, in the window and at the daemon", async () => {
    let aborted = false;
    const service = new FakeService({
      connect: (signal) =>
        new Promise((_, reject) =>
          signal?.addEventListener("abort", () => {
            aborted = true;
            reject(new Error("Cancelled."));
          }),
        ),
    });
    const asked = new Promise<void>((resolve) => {
      const { connect } = service.calls;
      service.calls = {
        ...service.calls,
        connect: (signal) => {
          resolve();
          return connect(signal);
        },
      };
    });
    await serve(new FakeHost(service));
    const opened = client().client.open(folder());
    const abort = new AbortController();
    const connecting = opened.calls.connect(abort.signal);
    await asked;
    abort.abort();
    await assert.rejects(connecting, { code: "cancelled-by-caller", message: "Connecting was cancelled." });
    await until("the daemon to give up too", () => aborted);
  });

  it("lets callers cancel while they wait for it", async () => {
    const listener = createServer();
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket: join(stateFolder, "daemon.sock") }));
    assert.ok(await listenExclusively(listener, join(stateFolder, "daemon.sock")));
    held.push({ dispose: () => listener.close() });
    const abort = new AbortController();
    const waiting = client().client.open(folder()).calls.output("ses_1", { signal: abort.signal });
    abort.abort();
    await assert.rejects(waiting, { message: "Waiting was cancelled. The tasks continue." });
  });

  it("passes on what conversations tell, and opens them again after the daemon crashed", async () => {
    const service = new FakeService();
    const server = await serve(new FakeHost(service));
    const { client: window, states } = client();
    const opened = window.open(folder());
    const told: ConversationMessage[] = [];
    const conversation = await opened.openConversation("ses_task", (message) => told.push(message));
    const question = { type: "earlier", before: "prt_1" } as const;
    conversation.ask(question);
    await until("the question", () => service.conversations[0]?.questions[0]);
    assert.deepEqual(service.conversations[0]?.questions, [question]);
    const message: ConversationMessage = { type: "changes", changes: [{ type: "remove", id: "prt_1" }] };
    service.conversations[0].send(message);
    await until("the change", () => told.length > 0);
    assert.deepEqual(told, [message]);
    server.dispose();
    const again = new FakeService();
    await serve(new FakeHost(again));
    await until("the loss to be seen", () => states.includes("connecting"));
    await clock.advance(0);
    await until("the folder to be opened again", () => again.listeners > 0);
    assert.equal(again.conversations.length, 0);
    again.connect();
    await until("the conversation to be read again", () => again.conversations[0]?.questions[0]);
    const [reopened] = again.conversations;
    assert.deepEqual(reopened?.questions, [{ type: "newest" }]);
    reopened.send(message);
    await until("the change of the new daemon", () => told.length > 1);
    assert.deepEqual(await conversation.open({ type: "open-transcript" }), {
      type: "session",
      id: "ses_task",
    });
    conversation.dispose();
    await until("the daemon to leave it", () => reopened.isDisposed);
  });

  it("asks for an update of the extension if the daemon has a newer protocol", async () => {
    const socket = join(stateFolder, "daemon.sock");
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket, version: "2.0.0", protocol: 2 }));
    const newer = createServer((connection) => {
      new AnsweringWire(
        connection,
        () => undefined,
        () => Promise.reject(new OtherProtocol("window")),
      );
    });
    assert.ok(await listenExclusively(newer, socket));
    held.push({ dispose: () => newer.close() });
    const { client: window } = client();
    const opened = window.open(folder());
    const { told } = follow(opened);
    await assert.rejects(opened.calls.models(), (error) => {
      assert.ok(error instanceof ConnectionError);
      assert.equal(error.failure.code, "outdated");
      assert.equal(error.message, "A newer version of Async Agents is already running.");
      assert.deepEqual(
        error.failure.remedy,
        sentence("Update the extension if needed, then reload the window."),
      );
      return true;
    });
    assert.deepEqual(told(), ["failed"]);
    assert.equal(window.state.kind, "failed");
  });

  it("is made to a newer daemon with the same protocol", async () => {
    const host = new FakeHost(new FakeService({ models: async () => [] }));
    await serve(host, "1.10.0");
    assert.deepEqual(await client().client.open(folder()).calls.models(), []);
    assert.equal(host.handedOver, 0);
  });

  it("lets an older daemon hand over to a newer one", async () => {
    const older = new FakeHost();
    const server = await serve(older, "1.2.0");
    let isReplaced: Promise<unknown> | undefined;
    older.onHandOver = () => {
      server.dispose();
      const service = new FakeService({ lastAnswer: async () => "newer" });
      isReplaced = serve(new FakeHost(service), "1.10.0");
    };
    // This test's daemon is in this process; a program that finds it exits with this code.
    const { calls } = client(script(`process.exit(${EXIT_ALREADY_SERVED})`), "1.10.0").client.open(folder());
    assert.equal(await whileTimePasses(calls.lastAnswer("ses_1")), "newer");
    await isReplaced;
    assert.equal(older.handedOver, 1);
  });

  it("is not made if an older daemon doesn't hand over", async () => {
    const older = new FakeHost();
    older.handOver = () => Promise.reject(new Refusal("unavailable", sentence("Not now.")));
    const server = await serve(older, "1.2.0");
    const { client: window } = client(script(""), "1.10.0");
    await assert.rejects(
      whileTimePasses(window.open(folder()).calls.models()),
      ({ name, message, failure }) => {
        assert.equal(name, "ConnectionError");
        assert.equal(message, "Can't use the background process of Async Agents: Not now.");
        assert.equal(failure.code, "daemon-failed");
        return true;
      },
    );
    await until("the older daemon to be left", () => server.windows === 0);
  });

  it("lets a daemon with an older protocol hand over", async () => {
    const socket = join(stateFolder, "daemon.sock");
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket, protocol: 0 }));
    const asked: string[] = [];
    const older = createServer((connection) => {
      new AnsweringWire(
        connection,
        () => undefined,
        async (method) => {
          asked.push(method);
          if (method === "hello") throw new OtherProtocol("daemon");
          older.close();
          isReplaced = serve(new FakeHost(new FakeService({ models: async () => [] })));
          connection.destroy();
        },
      );
    });
    let isReplaced: Promise<unknown> | undefined;
    assert.ok(await listenExclusively(older, socket));
    const { calls } = client(script(`process.exit(${EXIT_ALREADY_SERVED})`)).client.open(folder());
    assert.deepEqual(await whileTimePasses(calls.models()), []);
    await isReplaced;
    // Once when it was found, and once more before another one is started.
    assert.deepEqual(asked, ["hello", "hello", "handOver"]);
  });

  it("finds a daemon that another window started, even if it can be found only later", async () => {
    const ran = join(tempDir("rpc"), "ran");
    const program = `require("fs").writeFileSync(${JSON.stringify(ran)}, ""); process.exit(${EXIT_ALREADY_SERVED})`;
    const models = client(script(program)).client.open(folder()).calls.models();
    await until("the start in vain", () => existsSync(ran) && clock.pending > 0);
    const served = delay(100).then(() => serve(new FakeHost(new FakeService({ models: async () => [] }))));
    assert.deepEqual(await whileTimePasses(models), []);
    await served;
  });

  it("reports that the state folder cannot be used", async () => {
    stateFolder = join(script(""), "state");
    await assert.rejects(client().client.open(folder()).calls.models(), {
      name: "ConnectionError",
      message: /^Can't use the background process of Async Agents: E/,
    });
  });

  it("says why no daemon could be started, and tries again with the next call", async () => {
    const { client: window, states } = client(script("process.exit(3)"));
    const opened = window.open(folder());
    const { told } = follow(opened);
    await assert.rejects(opened.calls.models(), {
      name: "ConnectionError",
      message: "The background process of Async Agents didn't start: it ended (exit code 3).",
    });
    assert.deepEqual([told(), states], [["failed"], ["failed"]]);
    await opened.calls.join();
    await serve(new FakeHost(new FakeService({ models: async () => [] })));
    assert.deepEqual(await opened.calls.models(), []);
    assert.deepEqual(told(), ["failed", "connecting", "failed", "connecting", "reset undefined"]);
    assert.deepEqual(states, ["failed", "connecting", "failed", "connecting", "connected"]);
  });

  it("tries again at once after a failed start, then with growing pauses of at most five seconds", async () => {
    const { client: window, states } = client(script("process.exit(3)"));
    const opened = window.open(folder());
    const { told } = follow(opened);
    for (const [attempt, delay] of [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].entries()) {
      await until("the attempt to fail", () => told().length === attempt + 1 && clock.pending === 1);
      await clock.advance(delay - 1);
      assert.equal(clock.pending, 1);
      await clock.advance(1);
    }
    assert.deepEqual(new Set(told()), new Set(["failed"]));
    assert.deepEqual(new Set(states), new Set(["failed"]));
  });

  it("reports a daemon that does not greet as silent, and continues once one does", async () => {
    const socket = join(stateFolder, "daemon.sock");
    await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket }));
    let connections = 0;
    const silent = createServer((connection) => {
      connections++;
      connection.resume();
    });
    assert.ok(await listenExclusively(silent, socket));
    const { client: window } = client();
    const opened = window.open(folder());
    const { told, changes } = follow(opened);
    const waiting = opened.calls.models();
    await until("the greeting", () => connections === 1 && clock.pending > 0);
    await clock.advance(10_000);
    await until("the silence to be told", () => window.state.kind === "silent");
    assert.deepEqual(told(), ["reconnecting"]);
    const reason = sentence("The background process isn't responding.");
    assert.deepEqual(changes[0], { type: "connection", state: { kind: "reconnecting", reason } });
    await until("the next greeting", () => connections === 2 && clock.pending > 0);
    silent.close();
    await serve(new FakeHost(new FakeService({ models: async () => [] })));
    await clock.advance(10_000);
    await clock.advance(100);
    assert.deepEqual(await waiting, []);
    assert.equal(window.state.kind, "connected");
  });

  const welcome = { proof: "proof", protocol: PROTOCOL_VERSION, version: "1.2.0", pid: process.pid };
  for (const [what, given] of [
    ["a wrong proof", welcome],
    ["nothing", undefined],
  ] as const)
    it(`is not made to a program at the daemon's socket that answers with ${what}`, async () => {
      const socket = join(stateFolder, "daemon.sock");
      await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket, token: "secret" }));
      const received: unknown[] = [];
      const stranger = createServer((connection) => {
        new AnsweringWire(
          connection,
          () => undefined,
          async (method, params) => {
            received.push(method, params);
            return given;
          },
        );
      });
      assert.ok(await listenExclusively(stranger, socket));
      held.push({ dispose: () => stranger.close() });
      const { client: window } = client();
      const answer = whileTimePasses(window.open(folder()).calls.models());
      await assert.rejects(answer, {
        name: "ConnectionError",
        message: /background process .* didn't start/,
      });
      assert.equal(window.state.kind, "failed");
      assert.deepEqual([...new Set(received.filter((each) => typeof each === "string"))], ["hello"]);
      assert.doesNotMatch(JSON.stringify(received), /secret|PATH/);
    });

  it("tells whether a daemon is running, what it does, and where its log is", async () => {
    const host = new FakeHost();
    const { client: window } = client();
    assert.equal(await window.isStarted(), false);
    await serve(host);
    assert.equal(await window.isStarted(), true);
    assert.deepEqual(await window.status(), { folders: [], pid: process.pid, startedAt: 1 });
    assert.deepEqual(await window.diagnostics(), {});
    assert.equal(await window.logFile(), join(stateFolder, "daemon.log"));
    await window.stop(["/work"]);
    assert.deepEqual(host.stopped, ["/work"]);
  });

  it("writes what the daemon logs into the window's log", async () => {
    const host = new FakeHost();
    await serve(host);
    const logged: string[] = [];
    const logger = { ...silentLogger, warn: (text: string) => void logged.push(text) };
    const options = {
      stateFolder,
      execPath: process.execPath,
      script: "/no/program",
      env: {},
      clock,
      logger,
    };
    const window = new DaemonClient({ ...options, version: "1.2.0" });
    held.push(window);
    await window.status();
    host.tell({ level: "warn", message: "The disk is full." });
    await until("the line", () => logged.length > 0);
    assert.deepEqual(logged, ["The disk is full."]);
  });

  it("reports that a folder can't be opened, and tries again with the next call", async () => {
    const host = new FakeHost(new FakeService({ models: async () => [] }));
    host.gate = () => Promise.reject(new Refusal("unavailable", sentence("Not now.")));
    await serve(host);
    const opened = client().client.open(folder());
    const { told } = follow(opened);
    await until("the failure", () => told().length > 0);
    assert.deepEqual(told(), ["failed"]);
    host.gate = async () => undefined;
    assert.deepEqual(await opened.calls.models(), []);
    assert.deepEqual(told(), ["failed", "reset undefined"]);
  });

  describe("opens a conversation again that the next daemon couldn't open", () => {
    const refusing = (): Promise<never> => {
      refused++;
      return Promise.reject(new Refusal("unknown-task", sentence("Not yet.")));
    };
    let refused: number;
    let again: FakeService;
    let conversation: Conversation;

    beforeEach(async () => {
      refused = 0;
      const server = await serve(new FakeHost(new FakeService()));
      const { client: window, states } = client();
      const opened = window.open(folder());
      conversation = await opened.openConversation("ses_task", () => undefined);
      server.dispose();
      again = new FakeService();
      const open = again.openConversation.bind(again);
      again.openConversation = refusing;
      await serve(new FakeHost(again));
      await until("the loss to be seen", () => states.includes("connecting"));
      await clock.advance(0);
      await until("the folder to be opened again", () => again.listeners > 0);
      again.connect();
      await until("the refusal", () => refused === 1);
      again.openConversation = open;
    });

    it("at its next connect", async () => {
      await until("another try", () => {
        again.connect();
        return again.conversations[0]?.questions[0];
      });
      assert.deepEqual(again.conversations[0]?.questions, [{ type: "newest" }]);
    });

    it("after a pause", async () => {
      await until("another try", async () => {
        await clock.advance(100);
        return again.conversations[0]?.questions[0];
      });
      assert.deepEqual(again.conversations[0]?.questions, [{ type: "newest" }]);
    });

    it("when something is asked of it", async () => {
      const older = { type: "earlier", before: "msg_1" } as const;
      await until("another try", () => {
        conversation.ask(older);
        return again.conversations[0]?.questions[1];
      });
      assert.deepEqual(again.conversations[0]?.questions.slice(0, 2), [{ type: "newest" }, older]);
    });

    it("but not if it is closed by then", async () => {
      await until("the pause", () => clock.pending > 1);
      conversation.dispose();
      await clock.advance(1_000);
      assert.equal(refused, 1);
      assert.deepEqual(again.conversations, []);
    });
  });

  it("is to a second daemon if the first one ends before it is greeted", async () => {
    const starts = join(tempDir("rpc"), "starts");
    const note = `require("fs").appendFileSync(${JSON.stringify(starts)}, "start,")`;
    const { client: window, states } = client(script(`${note}; console.log("${LISTENING}");`));
    follow(window.open(folder()));
    await until(
      "the second start",
      () => existsSync(starts) && readFileSync(starts, "utf8") === "start,start,",
    );
    await serve();
    await until("the connection", async () => {
      await clock.advance(50);
      return states.includes("connected");
    });
    assert.equal(readFileSync(starts, "utf8"), "start,start,");
  });

  it("is closed without stopping the daemon", async () => {
    const host = new FakeHost(new FakeService({ retry: () => new Promise(() => undefined) }));
    const server = await serve(host);
    const { client: window } = client();
    const opened = window.open(folder());
    const { told } = follow(opened);
    await until("the folder to be open", () => told().length === 1);
    const lost = opened.calls.retry("ses_1");
    lost.catch(() => undefined);
    window.dispose();
    await assert.rejects(lost, { name: "ServerFailure", reason: "unreachable" });
    await until("the folder to be closed", () => host.closed === 1 && server.windows === 0);
    await assert.rejects(opened.calls.models(), { name: "ServerFailure", reason: "unreachable" });
  });

  describe("to a separate process", () => {
    const program = resolve("test/unit/rpc/daemon-process.ts");
    const env = { ...process.env, NODE_OPTIONS: `--import=${tsx}` };

    before(function () {
      if (process.platform === "win32") this.skip();
    });

    it("is to the same process for all windows that open at once, even with a long state path", async () => {
      stateFolder = join(tempDir("rpc"), "long".repeat(30));
      const open = () => {
        const { execPath } = process;
        const options = { stateFolder, execPath, script: program, env, version: "1.2.0" };
        const window = new DaemonClient({ ...options, clock: systemClock, logger: silentLogger });
        held.push(window);
        return window.open(folder()).calls.lastAnswer("ses_1");
      };
      const [first, ...others] = await Promise.all([open(), open(), open()]);
      assert.deepEqual(others, [first, first]);
      assert.notEqual(first, String(process.pid));
      assert.ok(existsSync(join(stateFolder, "daemon.log")));
      assert.equal(readFileSync(join(stateFolder, "daemon.log"), "utf8"), "");
    });

    it("is to a new process after the old one is killed, or restarted while suspended", async () => {
      const { client: window, states } = client(program, "1.2.0", env);
      const opened = window.open(folder());
      const first = Number(await opened.calls.lastAnswer("ses_1"));
      process.kill(first, "SIGKILL");
      await until("the loss to be seen", () => states.includes("connecting"));
      await clock.advance(0);
      const second = Number(await opened.calls.lastAnswer("ses_1"));
      assert.notEqual(second, first);

      process.kill(second, "SIGSTOP");
      const lost = assert.rejects(opened.calls.retry("ses_1"), /may|Check the task/);
      const waiting = opened.calls.lastAnswer("ses_1");
      await clock.advance(9_999);
      assert.equal(states.at(-1), "connected");
      await clock.advance(1);
      assert.equal(states.at(-1), "silent");
      process.kill(second, "SIGCONT");
      assert.equal(Number(await waiting), second);
      await until("the answer to be noticed", () => states.at(-1) === "connected");

      process.kill(second, "SIGSTOP");
      await clock.advance(10_000);
      assert.equal(states.at(-1), "silent");
      const restarted = window.restart();
      await lost;
      let isBack = false;
      void restarted.then(() => (isBack = true));
      await until("the daemon to be back", async () => {
        // More slowly than real time, because otherwise the start would exceed its time limit.
        await clock.advance(5);
        return isBack;
      });
      const third = Number(await opened.calls.lastAnswer("ses_1"));
      assert.notEqual(third, second);
    });
  });
});
