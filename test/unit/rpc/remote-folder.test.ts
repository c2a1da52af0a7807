import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConnectionError } from "../../../src/engine/connection.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import type { FolderChange, FolderSnapshot } from "../../../src/rpc/contract.ts";
import { DaemonClient, type DaemonState } from "../../../src/rpc/daemon-client.ts";
import { DaemonServer } from "../../../src/rpc/daemon-server.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { FakeHost, FakeService, folder, settings, silentLogger } from "./fake-host.ts";

describe("A folder of the daemon", () => {
  let stateFolder: string;
  let clock: ManualClock;
  let logged: unknown[][];
  const held: { dispose(): void }[] = [];

  beforeEach(() => {
    stateFolder = join(tempDir("rpc"), "state");
    clock = new ManualClock();
    logged = [];
  });

  afterEach(() => {
    for (const each of held.splice(0).reverse()) each.dispose();
  });

  async function serve(host = new FakeHost()): Promise<DaemonServer> {
    const options = { stateFolder, host, version: "1.2.0", clock: new ManualClock(), logger: silentLogger };
    const server = await DaemonServer.open(options);
    assert.ok(server);
    held.push(server);
    return server;
  }

  function client(script = "/no/program") {
    const logger: Logger = {
      debug: (message) => logged.push(["debug", message]),
      info: (message) => logged.push(["info", message]),
      warn: (message) => logged.push(["warn", message]),
      error: (message, error) => logged.push(["error", message, error]),
    };
    const { execPath } = process;
    const window = new DaemonClient({
      stateFolder,
      execPath,
      script,
      env: {},
      version: "1.2.0",
      clock,
      logger,
    });
    held.push(window);
    const states: DaemonState["kind"][] = [];
    window.onDidChangeState(({ kind }) => states.push(kind));
    return { window, states };
  }

  function failing(): string {
    const path = join(tempDir("rpc"), "daemon.cjs");
    writeFileSync(path, "process.exit(3);");
    return path;
  }

  const refusal = new Refusal("unavailable", sentence("Not now."));

  function connectedSnapshot(): FolderSnapshot {
    const connection = {
      kind: "connected",
      url: "http://127.0.0.1:1",
      version: "1.18.33",
      own: true,
    } as const;
    return { ...new FakeService().snapshot(), connection };
  }

  it("is on its way to the daemon at first", () => {
    assert.deepEqual(client().window.state, { kind: "connecting" });
  });

  it("is opened once for all who want it before the connection, with the latest settings", async () => {
    const host = new FakeHost(new FakeService({ models: async () => [] }));
    await serve(host);
    const { window } = client();
    const first = window.open(folder());
    window.open(folder());
    const watched = { ...settings, watched: true };
    first.configure(watched);
    await first.calls.models();
    assert.deepEqual(
      host.opened.map((opened) => opened.settings),
      [watched],
    );
    assert.deepEqual(host.configured, []);
  });

  it("logs that the connection was lost, and that it can't be restored only once", async () => {
    const server = await serve();
    const { window, states } = client(failing());
    window.open(folder());
    await until("the connection", () => states.includes("connected"));
    assert.equal(logged.length, 0);
    server.dispose();
    await until("the loss", () => states.includes("connecting") && clock.pending === 1);
    assert.deepEqual(logged[0], ["info", "Lost the connection to the background process."]);
    for (const ms of [0, 100, 200]) {
      const before = states.filter((state) => state === "failed").length;
      await clock.advance(ms);
      await until("the failure", () => states.filter((state) => state === "failed").length > before);
      await until("the pause", () => clock.pending === 1);
    }
    const [, ...errors] = logged;
    assert.deepEqual(
      errors.map(([level, message, error]) => [level, message, error instanceof ConnectionError]),
      [["error", "Couldn't reach the background process.", true]],
    );
  });

  it("is connected again at once after a connection of five seconds, and otherwise after a pause", async () => {
    let server = await serve();
    const { window, states } = client();
    window.open(folder());
    const connected = (): Promise<unknown> =>
      until("the connection", () => states.at(-1) === "connected" && clock.pending === 1);
    const lost = async (): Promise<void> => {
      server.dispose();
      await until("the loss", () => states.at(-1) === "connecting" && clock.pending === 1);
      server = await serve();
    };
    await connected();
    await lost();
    await clock.advance(0);
    await connected();
    await clock.advance(4_999);
    await lost();
    await clock.advance(99);
    assert.equal(clock.pending, 1);
    await clock.advance(1);
    await connected();
    await clock.advance(5_000);
    await lost();
    await clock.advance(0);
    assert.equal(clock.pending, 0);
    await connected();
  });

  it("says that the background process is being started when somebody asks again", async () => {
    const { window, states } = client(failing());
    const opened = window.open(folder());
    const changes: FolderChange[] = [];
    opened.onDidChange((more) => changes.push(...more));
    await until("the failure", () => states.at(-1) === "failed" && clock.pending === 1);
    await assert.rejects(opened.calls.models(), { name: "ConnectionError" });
    assert.deepEqual(changes[1], {
      type: "connection",
      state: { kind: "connecting", detail: sentence("Starting the background process…") },
    });
  });

  it("only logs why its server can't be joined", async () => {
    await serve(new FakeHost(new FakeService({ join: () => Promise.reject(refusal) })));
    await client().window.open(folder()).calls.join();
    assert.deepEqual(logged, [["debug", "Couldn't join the folder: Not now."]]);
  });

  it("is not joined again, but its conversations are read, if the next daemon is connected already", async () => {
    const server = await serve();
    const { window, states } = client();
    const opened = window.open(folder());
    await opened.openConversation("ses_task", () => undefined);
    server.dispose();
    let joined = 0;
    const again = new FakeService({ join: async () => void joined++, models: async () => [] });
    again.snapshot = connectedSnapshot;
    await serve(new FakeHost(again));
    await until("the loss", () => states.includes("connecting"));
    await clock.advance(0);
    await until("the conversation", () => again.conversations[0]?.questions[0]);
    await opened.calls.models();
    assert.equal(joined, 0);
  });

  it("tries a refused conversation again at a connect only, whatever else changes", async () => {
    const server = await serve();
    const { window, states } = client();
    const opened = window.open(folder());
    await opened.openConversation("ses_task", () => undefined);
    server.dispose();
    const again = new FakeService({ models: async () => [] });
    again.snapshot = connectedSnapshot;
    let refused = 0;
    again.openConversation = () => {
      refused++;
      return Promise.reject(refusal);
    };
    await serve(new FakeHost(again));
    await until("the loss", () => states.includes("connecting"));
    await clock.advance(0);
    const failed = ["warn", "Couldn't read a conversation again: Not now."];
    const failures = (): unknown[][] => logged.filter(([level]) => level === "warn");
    await until("the refusal", () => failures().length === 1);
    again.change("ses_2");
    again.flush();
    again.tell({ type: "connection", state: { kind: "disconnected" } });
    await opened.calls.models();
    assert.deepEqual([refused, failures()], [1, [failed]]);
    again.change("ses_3");
    again.tell({ type: "connection", state: connectedSnapshot().connection });
    await until("the second refusal", () => failures().length === 2);
    assert.deepEqual([refused, failures()], [2, [failed, failed]]);
  });

  /** Keeps conversations from being opened until that is allowed. */
  function holdConversations(service: FakeService): { asked: number; open: () => void } {
    const held = { asked: 0, open: (): void => undefined };
    const gate = new Promise<void>((resolve) => (held.open = resolve));
    const openConversation = service.openConversation.bind(service);
    service.openConversation = async (...args) => {
      held.asked++;
      await gate;
      return openConversation(...args);
    };
    return held;
  }

  it("opens a conversation again that was being opened when the folder was", async () => {
    const service = new FakeService();
    service.snapshot = connectedSnapshot;
    const held = holdConversations(service);
    await serve(new FakeHost(service));
    const { window } = client();
    const opening = window.open(folder()).openConversation("ses_task", () => undefined);
    await until("the conversation to be asked for", () => held.asked > 0);
    // Another path to the same folder.
    const other = window.open(folder());
    let isOpen = false;
    other.onDidChange(() => (isOpen = true));
    await until("the folder to be open again", () => isOpen);
    held.open();
    const conversation = await opening;
    conversation.ask({ type: "newest" });
    await until("the question", () =>
      service.conversations.some(({ isDisposed, questions }) => !isDisposed && questions.length > 0),
    );
  });

  it("logs what was asked of a conversation and failed", async () => {
    const service = new FakeService();
    await serve(new FakeHost(service));
    const conversation = await client()
      .window.open(folder())
      .openConversation("ses_task", () => undefined);
    const [followed] = service.conversations;
    assert.ok(followed);
    followed.ask = () => {
      throw refusal;
    };
    conversation.ask({ type: "newest" });
    await until("the line", () => logged.length > 0);
    assert.deepEqual(logged, [["warn", "A conversation failed: Not now."]]);
  });

  it("lets a conversation be closed while there is no connection", async () => {
    const server = await serve();
    const { window, states } = client();
    const conversation = await window.open(folder()).openConversation("ses_task", () => undefined);
    server.dispose();
    await until("the loss", () => states.includes("connecting"));
    conversation.dispose();
  });

  it("says of what is asked after it was closed that it was closed", async () => {
    const service = new FakeService();
    const held = holdConversations(service);
    await serve(new FakeHost(service));
    const { window } = client();
    const opened = window.open(folder());
    const opening = opened.openConversation("ses_task", () => undefined);
    await until("the conversation to be asked for", () => held.asked > 0);
    opened.dispose();
    held.open();
    await assert.rejects(opening, {
      name: "ServerFailure",
      call: "openConversation",
      message: /This folder was closed\.$/,
    });
    window.dispose();
    await assert.rejects(window.status(), { name: "ServerFailure", call: "connect" });
  });
});
