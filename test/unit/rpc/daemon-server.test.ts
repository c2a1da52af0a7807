import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { AskFirst, Refusal } from "../../../src/engine/errors.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import {
  PROTOCOL_VERSION,
  type DaemonNotifications,
  type DaemonRequests,
  type FolderChange,
  type FolderMethod,
  type WindowNotifications,
} from "../../../src/rpc/contract.ts";
import { listenExclusively, removeEntry, socketFor, writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { asEntry, connectTo, DaemonFiles, type DaemonEntry } from "../../../src/rpc/daemon-files.ts";
import { DaemonServer } from "../../../src/rpc/daemon-server.ts";
import { OtherProtocol } from "../../../src/rpc/failures.ts";
import { isProof, proofOf } from "../../../src/rpc/proof.ts";
import { Wire } from "../../../src/rpc/wire.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { FakeHost, FakeService, folder, settings, silentLogger } from "./fake-host.ts";

type Window = Wire<DaemonRequests, WindowNotifications>;

interface Place {
  readonly directory: string;
  readonly key: number;
}

describe("The daemon's server", () => {
  const held: { dispose(): void }[] = [];
  afterEach(() => {
    for (const each of held.splice(0)) each.dispose();
  });

  async function serve(
    host = new FakeHost(),
    stateFolder = join(tempDir("rpc"), "state"),
    logger = silentLogger,
  ) {
    const clock = new ManualClock();
    const server = await DaemonServer.open({ stateFolder, host, version: "1.0.0", clock, logger });
    assert.ok(server);
    held.push(server);
    const entry = await new DaemonFiles(stateFolder).read();
    assert.ok(entry);
    return { host, server, clock, entry, stateFolder };
  }

  async function connected(entry: DaemonEntry, told: Partial<DaemonNotifications> = {}): Promise<Window> {
    const socket = await connectTo(entry.socket);
    assert.ok(socket);
    const wire: Window = new Wire(socket, (method, params) =>
      told[method as keyof DaemonNotifications]?.(params as never),
    );
    held.push({ dispose: () => wire.close() });
    return wire;
  }

  const hello = (token: string, protocol = PROTOCOL_VERSION) => {
    const proof = proofOf(token, "window", "n");
    return [{ nonce: "n", proof, protocol, version: "1.0.0", pid: process.pid }] as [never];
  };

  async function greeted(entry: DaemonEntry, told: Partial<DaemonNotifications> = {}): Promise<Window> {
    const wire = await connected(entry, told);
    await wire.request("hello", hello(entry.token));
    return wire;
  }

  it("describes itself in files that only this user can read, and removes them when it ends", async function () {
    const { server, entry, stateFolder } = await serve();
    if (process.platform === "win32") return this.skip();
    assert.equal(statSync(stateFolder).mode & 0o777, 0o700);
    assert.equal(statSync(join(stateFolder, "daemon.json")).mode & 0o777, 0o600);
    assert.equal(entry.pid, process.pid);
    server.dispose();
    assert.ok(!existsSync(join(stateFolder, "daemon.json")));
    assert.ok(!existsSync(entry.socket));
  });

  it("leaves the description of a later daemon", async () => {
    const { server, entry, stateFolder } = await serve();
    const other = { ...entry, token: "another" };
    await writeEntry(new DaemonFiles(stateFolder), other);
    server.dispose();
    assert.deepEqual(await new DaemonFiles(stateFolder).read(), other);
  });

  it("is the only one for a state folder", async () => {
    const { stateFolder, clock } = await serve();
    const second = await DaemonServer.open({
      stateFolder,
      host: new FakeHost(),
      version: "1.0.0",
      clock,
      logger: silentLogger,
    });
    assert.equal(second, undefined);
  });

  it("greets a window that proves the token, proves it as well, and counts the window until it disconnects", async () => {
    const { entry, server } = await serve();
    const wire = await connected(entry);
    const welcome = await wire.request("hello", hello(entry.token));
    assert.ok(isProof(welcome.proof, entry.token, "daemon", "n"));
    assert.deepEqual(
      [welcome.protocol, welcome.version, welcome.pid],
      [PROTOCOL_VERSION, "1.0.0", process.pid],
    );
    assert.equal(server.windows, 1);
    const counts: number[] = [];
    server.onDidChangeWindows((count) => counts.push(count));
    wire.close();
    await until("the window to be gone", () => counts.length > 0);
    assert.deepEqual(counts, [0]);
  });

  it("answers only the greeting before it", async () => {
    const { entry, host } = await serve();
    const wire = await connected(entry);
    await assert.rejects(wire.request("open", [folder()]), {
      name: "Refusal",
      code: "not-allowed",
      message: "The background process requires its token before any other request.",
    });
    await assert.rejects(wire.request("reopen", [{ directory: "/work", env: {}, onlyIfUsed: true }]), {
      code: "not-allowed",
    });
    await assert.rejects(wire.request("handOver", []), { code: "not-allowed" });
    assert.deepEqual([host.opened, host.reopened], [[], []]);
    assert.equal(host.handedOver, 0);
  });

  it("takes nothing but the proof for one", () => {
    const proof = proofOf("token", "window", "n");
    assert.ok(isProof(proof, "token", "window", "n"));
    for (const other of [proof.slice(1), `${proof}x`, `x${proof.slice(1)}`, "", undefined, {}, 1])
      assert.equal(isProof(other, "token", "window", "n"), false);
    for (const [token, role, nonce] of [
      ["another", "window", "n"],
      ["token", "daemon", "n"],
      ["token", "window", "m"],
    ] as const)
      assert.equal(isProof(proof, token, role, nonce), false);
  });

  it("greets a window once", async () => {
    const { entry } = await serve();
    const wire = await greeted(entry);
    await assert.rejects(wire.request("hello", hello(entry.token)), { code: "not-allowed" });
  });

  it("tells a window about all of its work, and stops the folders that it names", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    assert.deepEqual(await wire.request("status", []), { folders: [], pid: process.pid, startedAt: 1 });
    assert.deepEqual(await wire.request("diagnostics", []), {});
    await wire.request("stop", [{ directories: ["/a", "/b"] }]);
    assert.deepEqual(host.stopped, ["/a", "/b"]);
  });

  it("while ending, carries nothing out, and tells no window of what failed", async () => {
    const gates = new Map<string, (error?: Error) => void>();
    const service = new FakeService({
      retry: (id) =>
        new Promise((resolve, reject) =>
          gates.set(id, (error) => (error ? reject(error) : resolve({ id } as never))),
        ),
      models: async () => [],
    });
    const { entry, host, server } = await serve(new FakeHost(service));
    const wire = await greeted(entry);
    await wire.request("open", [folder()]);
    const call = (method: FolderMethod, ...args: readonly unknown[]) =>
      wire.request("call", [{ directory: "/work", method, args }]);
    const [failing, succeeding] = [call("retry", "1"), call("retry", "2")];
    await until("the calls", () => gates.size === 2);
    host.isEnding = true;
    gates.get("1")?.(new ServerFailure("POST /x", "unreachable", sentence("Not now.")));
    gates.get("2")?.();
    assert.deepEqual(await succeeding, { id: "2" });
    const unanswered = [
      failing,
      call("models"),
      wire.request("open", [folder()]),
      wire.request("openConversation", [{ directory: "/work", key: 1, id: "ses_1" }]),
      wire.request("status", []),
      wire.request("diagnostics", []),
      wire.request("stop", [{ directories: ["/work"] }]),
    ];
    for (const each of unanswered) each.catch(() => undefined);
    // What is answered without waiting for anything would have arrived before the second answer.
    await wire.request("ping", []);
    await wire.request("ping", []);
    server.dispose();
    for (const each of unanswered) await assert.rejects(each, { name: "WireClosed" });
    assert.deepEqual([host.opened.length, host.stopped], [1, []]);
  });

  it("opens a folder again for a program that proves the token", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    await wire.request("reopen", [{ directory: "/work", env: { PATH: "/bin" }, onlyIfUsed: true }]);
    assert.deepEqual(host.reopened, [["/work", { env: { PATH: "/bin" }, onlyIfUsed: true }]]);
  });

  it("refuses what it doesn't know", async () => {
    const { entry } = await serve();
    const wire = (await greeted(entry)) as unknown as Wire<{ later(): void }, never>;
    await assert.rejects(wire.request("later", []), {
      name: "Refusal",
      code: "unavailable",
      message: "The background process doesn't know the command later. Reload this window.",
    });
  });

  it("can open a folder whose first opening failed", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    host.gate = () => Promise.reject(new Refusal("unavailable", sentence("Not now.")));
    await assert.rejects(wire.request("open", [folder()]), { message: "Not now." });
    host.gate = async () => undefined;
    await wire.request("open", [folder()]);
    assert.equal(host.opened.length, 2);
  });

  it("does not greet a window with another token, and disconnects it after five seconds", async () => {
    const { entry, server, clock } = await serve();
    const wire = await connected(entry);
    await assert.rejects(wire.request("hello", hello("another")), { code: "not-allowed" });
    assert.equal(server.windows, 0);
    await clock.advance(4_999);
    assert.ok(wire.isOpen);
    await clock.advance(1);
    await wire.closed;
  });

  it("disconnects a client that sends much without a token", async () => {
    const { entry } = await serve();
    const socket = connect(entry.socket);
    socket.on("error", () => undefined);
    socket.write(`Content-Length: 99999999\r\n\r\n${"x".repeat(20_000)}`);
    await once(socket, "close");
  });

  it("disconnects a client that notifies it without a token", async () => {
    const { entry, clock } = await serve();
    const wire = await connected(entry);
    wire.notify("close", { directory: "/work" });
    await wire.closed;
    await until("the deadline for its token to be gone", () => clock.pending === 0);
  });

  it("reads as much as it is sent by a window that was greeted", async () => {
    const { entry } = await serve();
    const wire = await greeted(entry);
    const path = `/${"x".repeat(100_000)}`;
    for (let count = 0; count < 2; count++)
      assert.equal(await wire.request("findExecutable", [{ path, env: {} }]), path);
  });

  it("logs what it can't read of a window, and ignores what is about folders that aren't open", async () => {
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (message: string) => void errors.push(message) };
    const { entry } = await serve(new FakeHost(), undefined, logger);
    const wire = await greeted(entry);
    const directory = "/none";
    wire.notify("configure", { directory, settings });
    wire.notify("closeConversation", { directory, key: 1 });
    wire.notify("close", { directory });
    await wire.request("ping", []);
    assert.deepEqual(errors, []);
    wire.notify("close", {} as never);
    await wire.request("ping", []);
    assert.deepEqual(errors, ["Couldn't handle close from a window."]);
  });

  it("logs that its description can't be removed", async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
    const { server, stateFolder } = await serve(new FakeHost(), undefined, logger);
    const description = new DaemonFiles(stateFolder).entry;
    rmSync(description);
    mkdirSync(description);
    server.dispose();
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /^Couldn't remove the background process's entry: EISDIR/);
  });

  it("knows nothing of a conversation that couldn't be opened", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    await wire.request("open", [folder()]);
    host.service.openConversation = () => Promise.reject(new Refusal("unknown-task", sentence("Gone.")));
    const place = { directory: "/work", key: 1 };
    await assert.rejects(wire.request("openConversation", [{ ...place, id: "ses_1" }]), { message: "Gone." });
    assert.equal(
      await wire.request("askConversation", [{ ...place, question: { type: "newest" } }]),
      undefined,
    );
  });

  it("disconnects the oldest of more than 32 clients that were not greeted", async () => {
    const { entry } = await serve();
    const first = await connected(entry);
    const others = [];
    for (let count = 0; count < 32; count++) others.push(await connected(entry));
    await first.closed;
    await assert.rejects(others[31]!.request("ping", []), { code: "not-allowed" });
    assert.ok(others.every((wire) => wire.isOpen));
  });

  it("reports to a window with an older protocol that the window is older", async () => {
    const { entry } = await serve();
    const wire = await connected(entry);
    await assert.rejects(wire.request("hello", hello(entry.token, PROTOCOL_VERSION - 1)), (error) => {
      assert.ok(error instanceof OtherProtocol);
      assert.equal(error.older, "window");
      return true;
    });
    await assert.rejects(wire.request("handOver", []), { code: "not-allowed" });
  });

  it("hands over to a window with a newer protocol, and does nothing else for it", async () => {
    const { entry, host } = await serve();
    const wire = await connected(entry);
    await assert.rejects(wire.request("hello", hello(entry.token, PROTOCOL_VERSION + 1)), (error) => {
      assert.ok(error instanceof OtherProtocol);
      assert.equal(error.older, "daemon");
      return true;
    });
    await assert.rejects(wire.request("open", [folder()]), { code: "not-allowed" });
    await wire.request("handOver", []);
    assert.equal(host.handedOver, 1);
  });

  it("sends a window a snapshot, then changes in order and before the answer of each call", async () => {
    const service = new FakeService({
      retry: async (id) => {
        service.change(`${id}-a`);
        service.change(`${id}-b`);
        return { id } as never;
      },
    });
    const { entry } = await serve(new FakeHost(service));
    const log: unknown[] = [];
    const wire = await greeted(entry, {
      changes: ({ directory, changes }) =>
        log.push(...changes.map((change) => [directory, (change as { id?: string }).id])),
    });
    service.change("before");
    const snapshot = await wire.request("open", [folder()]);
    assert.equal(snapshot.latestSessionID, "before");
    for (const id of ["1", "2"]) {
      await wire.request("call", [{ directory: "/work", method: "retry", args: [id] }]);
      log.push(`answer ${id}`);
    }
    assert.deepEqual(log, [
      ["/work", "1-a"],
      ["/work", "1-b"],
      "answer 1",
      ["/work", "2-a"],
      ["/work", "2-b"],
      "answer 2",
    ]);
  });

  it("sends what a failed call changed, and its error", async () => {
    const text = sentence("There is no task {0}.", "1");
    const errors: Readonly<Record<string, Error>> = {
      refusal: new Refusal("unknown-task", text),
      ask: new AskFirst("build", text),
      server: new ServerFailure("POST /x", "refused", text, 500),
      other: new TypeError("Unexpected."),
    };
    const service = new FakeService({
      retry: async (id) => {
        service.change(id);
        throw errors[id] ?? new Error(id);
      },
    });
    const { entry } = await serve(new FakeHost(service));
    const told: FolderChange[] = [];
    const wire = await greeted(entry, { changes: ({ changes }) => told.push(...changes) });
    await wire.request("open", [folder()]);
    for (const [id, expected] of Object.entries(errors)) {
      const error = await wire.request("call", [{ directory: "/work", method: "retry", args: [id] }]).then(
        () => undefined,
        (error: unknown) => error,
      );
      assert.ok(error instanceof Error);
      assert.equal(error.message, expected.message);
      if (!(expected instanceof TypeError)) assert.deepEqual({ ...error }, { ...expected });
      assert.deepEqual(told.splice(0), [{ type: "latest-session", id }]);
    }
  });

  it("refuses calls with invalid arguments, and calls in a folder that the window has not opened", async () => {
    const { entry } = await serve();
    const wire = await greeted(entry);
    const call = (directory: string) => wire.request("call", [{ directory, method: "retry", args: [1] }]);
    await assert.rejects(call("/work"), {
      code: "unavailable",
      message: "This window hasn't opened the folder /work.",
    });
    await wire.request("open", [folder()]);
    await assert.rejects(call("/work"), { code: "invalid-argument" });
  });

  it("aborts a call that its caller cancels, and those of a window that disconnects", async () => {
    const signals: AbortSignal[] = [];
    const service = new FakeService({
      output: (_, options) =>
        new Promise((_, reject) => {
          const signal = options?.signal as AbortSignal;
          signals.push(signal);
          signal.addEventListener("abort", () =>
            reject(
              new Refusal("cancelled-by-caller", sentence("Waiting was cancelled. The tasks continue.")),
            ),
          );
        }),
    });
    const { entry } = await serve(new FakeHost(service));
    const wire = await greeted(entry);
    await wire.request("open", [folder()]);
    const wait = (signal?: AbortSignal) =>
      wire.request("call", [{ directory: "/work", method: "output", args: ["ses_1"] }], signal);
    const abort = new AbortController();
    const cancelled = wait(abort.signal);
    const lost = wait();
    lost.catch(() => undefined);
    await until("both calls to wait", () => signals.length === 2);
    abort.abort();
    await assert.rejects(cancelled, { code: "cancelled-by-caller" });
    assert.equal(signals[1]?.aborted, false);
    wire.close();
    await assert.rejects(lost, { name: "WireClosed" });
    await until("the other call to be given up", () => signals[1]?.aborted);
  });

  it("lets a window follow conversations until it closes them or disconnects", async () => {
    const { entry, host } = await serve();
    const told: unknown[] = [];
    const wire = await greeted(entry, { conversation: (message) => told.push(message) });
    await wire.request("open", [folder()]);
    const [one, other] = [1, 2].map((key) => ({ directory: "/work", key })) as [Place, Place];
    for (const place of [one, other]) await wire.request("openConversation", [{ ...place, id: "ses_1" }]);
    const question = { type: "newest" } as const;
    await wire.request("askConversation", [{ ...other, question }]);
    const { conversations } = host.service;
    assert.deepEqual(
      conversations.map(({ questions }) => questions),
      [[], [question]],
    );
    const message = { type: "changes", changes: [{ type: "remove", id: "prt_1" }] } as const;
    conversations[1]?.send(message);
    await until("the change to be told", () => told.length > 0);
    assert.deepEqual(told, [{ ...other, message }]);
    const link = (place: Place) =>
      wire.request("openLink", [{ ...place, link: { type: "open-session", id: "prt_1" } }]);
    assert.deepEqual(await link(one), { type: "session", id: "ses_1" });
    wire.notify("closeConversation", one);
    await until("the conversation to be left", () => conversations[0]?.isDisposed);
    assert.equal((await link(one)) ?? undefined, undefined);
    assert.ok(!conversations[1]?.isDisposed);
    wire.close();
    await until("the other one to be left", () => conversations[1]?.isDisposed);
  });

  it("answers what is asked of a conversation while it is being opened, and closes it if it is left by then", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    await wire.request("open", [folder()]);
    const { service } = host;
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const opened = service.openConversation.bind(service);
    service.openConversation = (...args) => gate.then(() => opened(...args));
    const place = { directory: "/work", key: 1 };
    const opening = wire.request("openConversation", [{ ...place, id: "ses_1" }]);
    const asking = wire.request("askConversation", [{ ...place, question: { type: "newest" } }]);
    wire.notify("closeConversation", place);
    await wire.request("ping", []);
    open();
    await Promise.all([opening, asking]);
    assert.deepEqual(service.conversations[0]?.questions, [{ type: "newest" }]);
    await until("the conversation to be left", () => service.conversations[0]?.isDisposed);
  });

  it("configures and closes folders, and closes those of a window that disconnects", async () => {
    const { entry, host } = await serve();
    const wire = await greeted(entry);
    await wire.request("open", [folder("/a")]);
    await wire.request("open", [folder("/b")]);
    const watched = { ...settings, watched: true };
    wire.notify("configure", { directory: "/a", settings: watched });
    wire.notify("close", { directory: "/a" });
    await until("the folder to be closed", () => host.closed === 1);
    assert.deepEqual(host.configured, [watched]);
    wire.close();
    await until("the other folder to be closed", () => host.closed === 2);
    assert.equal(host.service.listeners, 0);
  });

  it("closes a folder that was still being opened when its window disconnected", async () => {
    const host = new FakeHost();
    let open!: () => void;
    const opening = new Promise<void>((resolve) => (open = resolve));
    host.gate = () => opening;
    const { entry, server } = await serve(host);
    const wire = await greeted(entry);
    wire.request("open", [folder()]).catch(() => undefined);
    await until("the folder to be asked for", () => host.opened.length === 1);
    wire.close();
    await until("the window to be gone", () => server.windows === 0);
    open();
    await until("the folder to be closed", () => host.closed === 1);
  });

  it("sends windows its log", async () => {
    const { entry, host } = await serve();
    const lines: unknown[] = [];
    await greeted(entry, { log: (line) => lines.push(line) });
    const line = { level: "warn", message: "Careful." } as const;
    host.tell(line);
    await until("the line", () => lines.length > 0);
    assert.deepEqual(lines, [line]);
  });
});

describe("The daemon's socket", () => {
  before(function () {
    if (process.platform === "win32") this.skip();
  });

  const longFolder = (): string => join(tempDir("rpc"), "long".repeat(30));

  it("is in a private folder of its own if its path would be too long", async () => {
    const files = new DaemonFiles(longFolder());
    const socket = await socketFor(files);
    try {
      assert.ok(Buffer.byteLength(socket) <= 100);
      assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
      assert.equal(await socketFor(files), socket);
    } finally {
      removeEntry(files, entryAt(socket));
    }
    assert.ok(!existsSync(dirname(socket)));
  });

  it("is not in that folder if others could write there", async () => {
    const files = new DaemonFiles(longFolder());
    const socket = await socketFor(files);
    chmodSync(dirname(socket), 0o777);
    const other = await socketFor(files);
    assert.notEqual(other, socket);
    for (const each of [socket, other]) removeEntry(files, entryAt(each));
  });

  it("is taken over after a crash, and not from a daemon that answers", async () => {
    const path = join(tempDir("rpc"), "daemon.sock");
    writeFileSync(path, "");
    const first = createServer((socket) => socket.resume());
    const second = createServer();
    assert.ok(await listenExclusively(first, path));
    assert.equal(await listenExclusively(second, path), false);
    first.close();
  });

  it("is not found through a description that lacks something", () => {
    const entry = { socket: "/s", token: "t", pid: 1 };
    assert.deepEqual(asEntry({ ...entry, protocol: 1 }), { ...entry, protocol: 1 });
    for (const broken of [
      undefined,
      null,
      "text",
      { ...entry, socket: 1 },
      { ...entry, token: undefined },
      { ...entry, pid: "1" },
    ])
      assert.equal(asEntry(broken), undefined);
  });

  it("is not found through a broken description", async () => {
    const state = tempDir("rpc");
    mkdirSync(join(state, "x"));
    writeFileSync(join(state, "daemon.json"), '{"socket":');
    assert.equal(await new DaemonFiles(state).read(), undefined);
    assert.equal(readFileSync(join(state, "daemon.json"), "utf8").length, 10);
  });

  it("and its description are left alone if the description is no longer its own", async () => {
    const files = new DaemonFiles(tempDir("rpc"));
    const socket = join(files.folder, "daemon.sock");
    for (const path of [socket, files.entry]) writeFileSync(path, "[]");
    removeEntry(files, entryAt(socket));
    assert.deepEqual([existsSync(socket), existsSync(files.entry)], [true, true]);
  });

  function entryAt(socket: string): DaemonEntry {
    return { socket, token: "t", pid: 1, protocol: 1, version: "1.0.0" };
  }
});
