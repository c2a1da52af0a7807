import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type AddressInfo, type Server } from "node:net";
import { json } from "node:stream/consumers";
import {
  MAX_CALL_BYTES,
  TOOL_CALL_PATH,
  type ToolAnswer,
  type ToolCall,
} from "../../../src/bridge/tool-call.ts";
import {
  publishEntry,
  type EndpointEntry,
  type PublishedEntry,
} from "../../../src/bridge/endpoint-entries.ts";
import { forward, type Forwarding } from "../../../src/plugin/forward.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { answeringDaemon, welcome } from "./answering-daemon.ts";

const call: ToolCall = {
  tool: "asyncagents_list",
  input: { status: "running" },
  sessionID: "ses_1",
  messageID: "msg_1",
  callID: "call_1",
};
const opencode = new URL("http://127.0.0.1:4096");
const reply = (text: string): ToolAnswer => ({ type: "result", title: "", text });

const withoutTime = ({ waitedMs: _, ...rest }: ToolCall): ToolCall => rest;
/** The call as an endpoint gets it first. */
const sentCall = { ...call, onlyIfOurs: true };

type Answer = (response: ServerResponse) => void;

/** Gives the same answer to each request. */
interface StubEndpoint {
  readonly port: number;
  readonly calls: ToolCall[];
  readonly requests: IncomingMessage[];
  readonly entry: PublishedEntry;
}

describe("Forwarding a call to an endpoint", () => {
  let stateFolder: string;
  let directory: string;
  let openedAt: number;
  const listening: Server[] = [];

  beforeEach(() => {
    stateFolder = tempDir("state");
    directory = tempDir("folder");
    openedAt = 0;
  });

  afterEach(() => {
    for (const server of listening.splice(0)) server.close();
  });

  function send(change: Partial<Forwarding> = {}, sent = call): Promise<ToolAnswer> {
    return forward(sent, {
      stateFolder,
      directory,
      server: opencode,
      patience: { untakenMs: 0, takenMs: 0 },
      signal: new AbortController().signal,
      reopens: false,
      ...change,
    });
  }

  /** A time limit that no test reaches. */
  const patient = { patience: { untakenMs: 60_000, takenMs: 60_000 } };

  async function listen(server: Server): Promise<number> {
    listening.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  }

  /** Each endpoint is newer than those before. */
  function publish(port: number, change: Partial<EndpointEntry> = {}): Promise<PublishedEntry> {
    return publishEntry(stateFolder, {
      directories: [directory],
      server: opencode.href,
      port,
      token: "secret",
      pid: process.pid,
      openedAt: ++openedAt,
      ...change,
    });
  }

  async function open(answer: Answer, change: Partial<EndpointEntry> = {}): Promise<StubEndpoint> {
    const calls: ToolCall[] = [];
    const requests: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      requests.push(request);
      void json(request).then((received) => {
        calls.push(received as ToolCall);
        answer(response);
      });
    });
    const port = await listen(server);
    const entry = await publish(port, change);
    return { port, calls, requests, entry };
  }

  const replying =
    (text: string): Answer =>
    (response) =>
      response.writeHead(200).end(`\n\n${JSON.stringify(reply(text))}\n`);
  const rejecting =
    (status: number): Answer =>
    (response) =>
      response.writeHead(status).end("No.");
  const notOurs: Answer = (response) => response.writeHead(200).end('{"type":"not-ours"}\n');
  const pending: Answer = (response) => response.writeHead(200).flushHeaders();
  const breaking: Answer = (response) => void response.writeHead(200).write("\n", () => response.destroy());

  /** Delays the answer by this time. */
  const after =
    (ms: number, answer: Answer): Answer =>
    (response) =>
      void setTimeout(() => answer(response), ms);

  it("sends the whole call, with the endpoint's token", async () => {
    const prompt = 'Line 1\nLine 2 "ü" 🙂 \u2028'.repeat(50_000);
    const { port, calls, requests } = await open(replying("Done."));
    assert.deepEqual(await send({}, { ...call, input: { prompt } }), reply("Done."));
    assert.deepEqual(calls.map(withoutTime), [{ ...sentCall, input: { prompt } }]);
    const [request] = requests;
    assert.equal(request?.method, "POST");
    assert.equal(request?.url, TOOL_CALL_PATH);
    assert.equal(request?.headers.authorization, "Bearer secret");
    assert.equal(request?.headers["content-type"], "application/json");
    assert.equal(request?.headers.host, `127.0.0.1:${port}`);
  });

  it("reassembles a reply that arrives in pieces, even within a character", async () => {
    const text = "üß🙂\n".repeat(30_000);
    const bytes = Buffer.from(`${JSON.stringify(reply(text))}\n`);
    const inTheMiddle = bytes.indexOf("🙂") + 2;
    await open((response) => {
      response.writeHead(200).write(bytes.subarray(0, inTheMiddle), () => {
        setImmediate(() => response.end(bytes.subarray(inTheMiddle)));
      });
    });
    assert.deepEqual(await send(), reply(text));
  });

  it("asks the newest endpoint first, and the next if one is gone or does not accept the call", async () => {
    const oldest = await open(replying("The oldest."));
    await open(replying("The next."));
    const gone = createSocketServer();
    await publish(await listen(gone));
    gone.close();
    await open(rejecting(401));
    const mute = createSocketServer((socket) => socket.end());
    await publish(await listen(mute));
    assert.deepEqual(await send(), reply("The next."));
    assert.deepEqual(oldest.calls, []);
  });

  describe("if the folder is also a worktree of another one", () => {
    const asWorktree = () => ({ directories: ["/main", directory] });

    it("goes on to the endpoint of the session's folder", async () => {
      const main = await open(replying("From the main folder."), asWorktree());
      const own = await open(notOurs);
      assert.deepEqual(await send(), reply("From the main folder."));
      assert.deepEqual([main.calls.length, own.calls.length], [1, 1]);
    });

    it("asks the folder's own endpoint first, though it is older", async () => {
      await open(replying("From its own."));
      const main = await open(notOurs, asWorktree());
      assert.deepEqual(await send(), reply("From its own."));
      assert.deepEqual(main.calls, []);
    });

    it("has a session that no folder claims served by the folder's own endpoint", async () => {
      const main = await open(notOurs, asWorktree());
      const answers = [notOurs, replying("From its own.")];
      const own = await open((response) => answers.shift()?.(response));
      assert.deepEqual(await send(), reply("From its own."));
      assert.deepEqual(own.calls.map(withoutTime), [sentCall, { ...call, onlyIfOurs: false }]);
      assert.equal(main.calls.length, 1);
    });

    it("has nothing carried out in the main folder for a session that isn't its own", async () => {
      const { calls } = await open(notOurs, asWorktree());
      await assert.rejects(send(), ({ message }: Error) => message.includes(`open ${directory} in VS Code`));
      assert.deepEqual(calls.map(withoutTime), [sentCall]);
    });

    it("has nothing carried out in the folder itself while the session's may be the other one", async () => {
      const own = await open(notOurs);
      await open(breaking, asWorktree());
      await assert.rejects(send(), /stopped serving this folder before it replied/);
      assert.deepEqual(own.calls.map(withoutTime), [sentCall]);
    });
  });

  it("does not ask endpoints whose process has ended", async () => {
    const { requests } = await open(replying("A stranger on its port."), {
      pid: spawnSync(process.execPath, ["--version"]).pid,
    });
    await assert.rejects(send(), /need Async Agents to be connected in this folder/);
    assert.deepEqual(requests, []);
  });

  it("sends each endpoint the time since the call was made", async () => {
    const next = await open(replying("The next."));
    const newest = await open(after(300, rejecting(401)));
    assert.deepEqual(await send(), reply("The next."));
    const [before, later] = [newest, next].map(({ calls }) => calls[0]?.waitedMs ?? NaN);
    assert.ok(before !== undefined && later !== undefined && later - before >= 290, `${before} ${later}`);
  });

  it("counts the time until endpoints reject the call as search time", async () => {
    const { calls } = await open(after(400, rejecting(401)));
    await assert.rejects(send({ patience: { untakenMs: 350, takenMs: 60_000 } }), /HTTP status 401/);
    assert.equal(calls.length, 1);
  });

  it("does not count the time in which an endpoint had the call as search time", async () => {
    const breakingLate: Answer = (response) => {
      pending(response);
      setTimeout(() => response.destroy(), 3_000);
    };
    const answers = [breakingLate, replying("From the next.")];
    await open((response) => answers.shift()?.(response));
    const patience = { untakenMs: 0, takenMs: 2_500 };
    assert.deepEqual(await send({ patience }), reply("From the next."));
  });

  it("finds the endpoint by the folder's real path", async () => {
    await open(replying("Found."));
    const link = `${tempDir("links")}/link`;
    symlinkSync(directory, link, "junction");
    assert.deepEqual(await send({ directory: link }), reply("Found."));
  });

  it("repeats the call with the same ID if the connection breaks after the call was accepted", async () => {
    const answers = [breaking, replying("At last.")];
    const { calls } = await open((response) => answers.shift()?.(response));
    const patience = { untakenMs: 0, takenMs: 60_000 };
    assert.deepEqual(await send({ patience }), reply("At last."));
    assert.deepEqual(calls.map(withoutTime), [sentCall, sentCall]);
    const [first, again] = calls.map(({ waitedMs }) => waitedMs ?? 0);
    assert.ok(first !== undefined && again !== undefined && again > first, `${first} ${again}`);
  });

  it("repeats the call after half a reply", async () => {
    const half: Answer = (response) =>
      void response.writeHead(200).write('{"type":"refused","message":"Hal', () => response.destroy());
    const answers = [half, replying("Whole.")];
    await open((response) => answers.shift()?.(response));
    assert.deepEqual(await send(patient), reply("Whole."));
  });

  it("has the folder opened again if what was opened for the call has gone, too", async () => {
    let opened = 0;
    const close = await answeringDaemon(stateFolder, async (method, params) => {
      if (method === "hello") return welcome(params);
      const isFirst = ++opened === 1;
      const { entry } = await open((response) => {
        if (isFirst) entry.withdraw();
        (isFirst ? breaking : replying("Done."))(response);
      });
      return undefined;
    });
    try {
      assert.deepEqual(await send({ ...patient, reopens: true }), reply("Done."));
      assert.equal(opened, 2);
    } finally {
      close();
    }
  });

  it("has the folder opened three times at most, as the call itself may end the daemon", async () => {
    let opened = 0;
    const close = await answeringDaemon(stateFolder, async (method, params) => {
      if (method === "hello") return welcome(params);
      opened++;
      const { entry } = await open((response) => {
        entry.withdraw();
        breaking(response);
      });
      return undefined;
    });
    try {
      const patience = { untakenMs: 60_000, takenMs: 3_000 };
      await assert.rejects(
        send({ patience, reopens: true }),
        /stopped serving this folder before it replied/,
      );
      assert.equal(opened, 3);
    } finally {
      close();
    }
  });

  it("waits for an endpoint to open that accepts the call", async () => {
    const first = await open(rejecting(401));
    const answer = send(patient);
    await until("the first attempt", () => first.calls.length === 1);
    await open(replying("Here now."));
    assert.deepEqual(await answer, reply("Here now."));
  });

  it("stops at once when it is aborted while waiting for an endpoint", async () => {
    const { calls } = await open(rejecting(401));
    const abort = new AbortController();
    const answer = send({ ...patient, signal: abort.signal });
    await until("the first attempt", () => calls.length === 1);
    abort.abort();
    await assert.rejects(answer, { name: "AbortError" });
  });

  it("stops at once when it is aborted during a call", async () => {
    const { requests } = await open(pending);
    const abort = new AbortController();
    const answer = send({ signal: abort.signal });
    const [request] = await until("the call", () => requests.length === 1 && requests);
    abort.abort();
    await assert.rejects(answer, { name: "AbortError" });
    await until("the end of the connection", () => request?.socket.destroyed);
  });

  it("asks no endpoint for a call that is already aborted", async () => {
    const { requests } = await open(replying("Not wanted."));
    await assert.rejects(send({ signal: AbortSignal.abort() }), { name: "AbortError" });
    assert.deepEqual(requests, []);
  });

  describe("gives up with a sentence that says what to do", () => {
    it("if no endpoint serves the folder", async () => {
      await open(replying("Elsewhere."), { directories: ["/elsewhere"] });
      await assert.rejects(send(), ({ message }: Error) => message.includes(`open ${directory} in VS Code`));
    });

    it("if there is no state folder", async () => {
      await assert.rejects(
        send({ stateFolder: `${stateFolder}/none` }),
        /need Async Agents to be connected in this folder/,
      );
    });

    it("if endpoints of the folder serve another server", async () => {
      const { calls } = await open(replying("Another."), { server: "http://127.0.0.1:4097" });
      await assert.rejects(
        send(),
        /connected to another OpenCode server; .* \(http:\/\/127\.0\.0\.1:4096\)\.$/,
      );
      assert.deepEqual(calls, []);
    });

    it("at once if OpenCode has no server that Async Agents could connect to", async () => {
      const { requests } = await open(replying("Of another server."));
      const server = new URL("http://localhost:4096/");
      await assert.rejects(send({ ...patient, server }), /has no server .* `opencode serve` or .* --port N`/);
      assert.deepEqual(requests, []);
    });

    it("if the endpoint disconnects during the call", async () => {
      await open(breaking);
      const patience = { untakenMs: 60_000, takenMs: 0 };
      await assert.rejects(
        send({ patience }),
        /stopped serving this folder before it replied.* asyncagents_list/,
      );
    });

    it("if the endpoint accepts the connection and does not answer, as it may still carry out the call", async () => {
      const mute = createSocketServer((socket) => socket.end());
      await publish(await listen(mute));
      await assert.rejects(send(), /did not respond.* before you repeat it, see with asyncagents_list/);
    });

    for (const status of [401, 403, 404, 500])
      it(`if the endpoint answers ${status}`, async () => {
        await open(rejecting(status));
        await assert.rejects(send(), new RegExp(`HTTP status ${status}\\); try again later`));
      });

    it("if the endpoint does not understand the call, without asking again", async () => {
      const { calls } = await open(rejecting(400));
      await assert.rejects(send(patient), /versions that do not fit together; reload .* restart/);
      assert.equal(calls.length, 1);
    });

    it("if the endpoint rejects the call as too large, without asking again", async () => {
      const { calls } = await open(rejecting(413));
      await assert.rejects(send(patient), /too large \(over 8 MB\); shorten the prompt/);
      assert.equal(calls.length, 1);
    });

    it("if the call is larger than any endpoint accepts, without asking at all", async () => {
      const { requests } = await open(replying("Taken."));
      const prompt = "ü".repeat(MAX_CALL_BYTES / 2);
      await assert.rejects(send(patient, { ...call, input: { prompt } }), /too large/);
      assert.deepEqual(requests, []);
    });
  });
});
