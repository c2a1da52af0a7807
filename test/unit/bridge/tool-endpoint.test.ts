import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import {
  FILE_WRITE_PATH,
  KEEP_ALIVE_MS,
  MAX_CALL_BYTES,
  TOOL_CALL_PATH,
} from "../../../src/bridge/tool-call.ts";
import type { ToolCall, ToolReply } from "../../../src/bridge/tool-call.ts";
import { ToolEndpoint, type ToolEndpointOptions } from "../../../src/bridge/tool-endpoint.ts";
import { readEntries, type EndpointEntry } from "../../../src/bridge/endpoint-entries.ts";
import { Refusal, UserFacingError } from "../../../src/engine/errors.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { ToolResult } from "../../../src/tools/tool.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

const call: ToolCall = {
  tool: "asyncagents_list",
  input: { status: "running" },
  sessionID: "ses_1",
  messageID: "msg_1",
  callID: "call_1",
};
const body = JSON.stringify(call);
const result: ToolResult = { title: "Listed", text: "one\ntwo", metadata: { n: 1 } };
const reply: ToolReply = { type: "result", title: "Listed", text: "one\ntwo", metadata: { n: 1 } };

/** The ID of no process: systems give smaller ones. */
const NO_PROCESS = 2 ** 31 - 1;

interface Sent {
  readonly method?: string;
  readonly path?: string;
  /** Undefined removes a header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

describe("The endpoint of the agents' tools", () => {
  let stateFolder: string;
  let clock: ManualClock;
  let handled: ToolCall[];
  let errors: unknown[][];
  const endpoints: ToolEndpoint[] = [];

  beforeEach(() => {
    stateFolder = join(tempDir("endpoint"), "state");
    clock = new ManualClock();
    handled = [];
    errors = [];
  });

  afterEach(() => {
    for (const endpoint of endpoints.splice(0)) endpoint.dispose();
  });

  function create(options: Partial<ToolEndpointOptions> = {}): ToolEndpoint {
    const endpoint = new ToolEndpoint({
      stateFolder,
      directories: ["/work"],
      server: "http://127.0.0.1:4096",
      handle: async (given) => {
        handled.push(given);
        return result;
      },
      beginWrite: async () => true,
      clock,
      logger: { debug() {}, info() {}, warn() {}, error: (...args) => void errors.push(args) },
      ...options,
    });
    endpoints.push(endpoint);
    return endpoint;
  }

  async function open(options?: Partial<ToolEndpointOptions>) {
    const endpoint = create(options);
    await endpoint.open();
    const [entry] = await readEntries(stateFolder);
    assert.ok(entry);
    return { endpoint, entry };
  }

  describe("when open", () => {
    it("is found through an entry that only this user can read", async () => {
      const { entry } = await open({ directories: ["/a", "/b"], pid: NO_PROCESS });
      const { port, token, ...rest } = entry;
      assert.deepEqual(rest, {
        v: 1,
        directories: ["/a", "/b"],
        server: "http://127.0.0.1:4096",
        pid: NO_PROCESS,
        openedAt: clock.now(),
      });
      assert.ok(port > 0);
      assert.match(token, /^[\w-]{43}$/);
      const [name = ""] = readdirSync(stateFolder);
      if (process.platform !== "win32") assert.equal(statSync(join(stateFolder, name)).mode & 0o777, 0o600);
    });

    it("has a new token each time", async () => {
      const first = await open();
      first.endpoint.dispose();
      const second = await open();
      assert.notEqual(first.entry.token, second.entry.token);
      assert.equal((await send(second.entry, authorizedBy(first.entry))).status, 401);
    });

    it("listens on 127.0.0.1 only", async () => {
      const { entry } = await open();
      const socket = connect(entry.port, "127.0.0.2");
      await assert.rejects(once(socket, "connect"), { code: "ECONNREFUSED" });
    });

    it("passes a call to its handler and sends back the result", async () => {
      const { entry } = await open();
      const answer = await send(entry);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["content-type"], "application/x-ndjson");
      assert.equal(answer.headers.connection, "close");
      assert.equal(answer.body, `${JSON.stringify(reply)}\n`);
      assert.deepEqual(handled, [call]);
    });

    it("answers under the name localhost, and to HTTP/1.0 clients", async () => {
      const { entry } = await open();
      assert.equal((await send(entry, { headers: { host: `localhost:${entry.port}` } })).status, 200);
      const socket = connect(entry.port, "127.0.0.1");
      socket.write(head(entry, "HTTP/1.0") + body);
      assert.ok((await text(socket)).endsWith(`\r\n\r\n${JSON.stringify(reply)}\n`));
    });

    it("accepts a prompt of a million characters", async () => {
      const { entry } = await open();
      const large = { ...call, input: { prompt: "日\n".repeat(500_000) } };
      assert.equal((await send(entry, { body: JSON.stringify(large) })).status, 200);
      assert.deepEqual(handled, [large]);
    });

    it("accepts fifty calls at once", async () => {
      const waiting: (() => void)[] = [];
      const { entry } = await open({
        handle: (given) =>
          new Promise((resolve) => waiting.push(() => resolve({ title: "", text: given.callID }))),
      });
      const ids = Array.from({ length: 50 }, (_, n) => `call_${n}`);
      const answers = ids.map((callID) => send(entry, { body: JSON.stringify({ ...call, callID }) }));
      await until("all calls", () => waiting.length === 50);
      for (const finish of waiting.toReversed()) finish();
      const texts = (await Promise.all(answers)).map((answer) => replyIn(answer));
      assert.deepEqual(
        texts,
        ids.map((id) => ({ type: "result", title: "", text: id })),
      );
    });
  });

  describe("when a request does not come from the plugin", () => {
    const authority = ({ port }: EndpointEntry): string => `127.0.0.1:${port}`;
    const refused: readonly [what: string, status: number, sent: (entry: EndpointEntry) => Sent][] = [
      ["without a token", 401, () => ({ headers: { authorization: undefined } })],
      ["with an empty token", 401, () => ({ headers: { authorization: "Bearer " } })],
      ["with another token", 401, () => ({ headers: { authorization: `Bearer ${"x".repeat(43)}` } })],
      [
        "with a part of the token",
        401,
        ({ token }) => ({ headers: { authorization: `Bearer ${token.slice(0, -1)}` } }),
      ],
      [
        "with the token in another scheme",
        401,
        ({ token }) => ({ headers: { authorization: `Basic ${token}` } }),
      ],
      [
        "with the token in the address",
        404,
        ({ token }) => ({ path: `${TOOL_CALL_PATH}?token=${token}`, headers: { authorization: undefined } }),
      ],
      ["for another host", 403, ({ port }) => ({ headers: { host: `evil.example:${port}` } })],
      ["for a host without its port", 403, () => ({ headers: { host: "127.0.0.1" } })],
      ["for another port", 403, ({ port }) => ({ headers: { host: `127.0.0.1:${port + 1}` } })],
      [
        "for a host that begins the same",
        403,
        (entry) => ({ headers: { host: `${authority(entry)}.evil.example` } }),
      ],
      ["of a web page", 403, () => ({ headers: { origin: "https://evil.example" } })],
      [
        "of a web page of its own address",
        403,
        (entry) => ({ headers: { origin: `http://${authority(entry)}` } }),
      ],
      ["of a web page in a sandbox", 403, () => ({ headers: { origin: "null" } })],
      [
        "that is a browser's preflight",
        403,
        () => ({
          method: "OPTIONS",
          headers: {
            origin: "https://evil.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type",
            "access-control-request-private-network": "true",
          },
        }),
      ],
      ["with OPTIONS", 405, () => ({ method: "OPTIONS" })],
      ["with GET", 405, () => ({ method: "GET", body: "" })],
      ["with PUT", 405, () => ({ method: "PUT" })],
      [
        "to upgrade the connection",
        405,
        () => ({ method: "GET", body: "", headers: { connection: "upgrade", upgrade: "websocket" } }),
      ],
      ["at another path", 404, () => ({ path: "/" })],
      ["at a longer path", 404, () => ({ path: `${TOOL_CALL_PATH}/` })],
      ["to a proxy", 404, () => ({ path: `http://evil.example${TOOL_CALL_PATH}` })],
      ["of plain text", 415, () => ({ headers: { "content-type": "text/plain" } })],
      ["of a form", 415, () => ({ headers: { "content-type": "application/x-www-form-urlencoded" } })],
      ["without a type", 415, () => ({ headers: { "content-type": undefined } })],
      ["that is empty", 400, () => ({ body: "" })],
      ["that isn't JSON", 400, () => ({ body: body.slice(0, -1) })],
      ["that is nested too deeply", 400, () => ({ body: "[".repeat(1_000_000) })],
      ["that isn't an object", 400, () => ({ body: "[]" })],
      ["without a session", 400, () => ({ body: JSON.stringify({ ...call, sessionID: undefined }) })],
      ["with a call ID of another type", 400, () => ({ body: JSON.stringify({ ...call, callID: 1 }) })],
    ];

    for (const [what, status, sent] of refused)
      it(`refuses a request ${what}, and keeps serving`, async () => {
        const { entry } = await open();
        const answer = await send(entry, sent(entry));
        assert.equal(answer.status, status, answer.body);
        assert.match(answer.body, /^[A-Z][^\n]*\.$/);
        assert.equal(answer.headers["content-type"], "text/plain; charset=utf-8");
        assert.equal(answer.headers["access-control-allow-origin"], undefined);
        assert.deepEqual(handled, []);
        assert.equal((await send(entry)).status, 200);
        assert.deepEqual(errors, []);
      });

    it("reveals nothing about what it serves in a refusal", async () => {
      const { entry } = await open({ directories: ["/secret"] });
      const answers = refused
        .filter(([, status]) => [401, 403, 404, 405].includes(status))
        .map(([, , sent]) => send(entry, { ...sent(entry) }));
      for (const { headers, body: told } of await Promise.all(answers)) {
        assert.doesNotMatch(`${told} ${JSON.stringify(headers)}`, /secret|4096|asyncagents|opencode|tool/i);
        assert.ok(!told.includes(entry.token));
      }
    });

    it("checks the token before the body", async () => {
      const { entry } = await open();
      const headers = { authorization: undefined };
      for (const sent of [
        { headers, body: "no JSON" },
        { headers: { ...headers, "content-type": "text/plain" } },
        { headers: { ...headers, "content-length": String(MAX_CALL_BYTES + 1) }, body: "" },
      ])
        assert.equal((await send(entry, sent)).status, 401);
    });

    it("refuses a body with too large a declared size without waiting for it", async () => {
      const { entry } = await open();
      const headers = { "content-length": String(MAX_CALL_BYTES + 1) };
      const { client, answered } = start(entry, { headers });
      client.write("{");
      assert.equal((await answered).statusCode, 413);
      client.destroy();
      assert.equal((await send(entry)).status, 200);
    });

    it("lets a client that sends its whole large body read the refusal", async () => {
      const { entry } = await open();
      const answer = await send(entry, { body: Buffer.alloc(4 * MAX_CALL_BYTES, " ") });
      assert.deepEqual(
        [answer.status, answer.body],
        [413, `Send a call of at most ${MAX_CALL_BYTES} bytes.`],
      );
      const unauthorized = { headers: { authorization: undefined }, body: Buffer.alloc(MAX_CALL_BYTES, " ") };
      assert.equal((await send(entry, unauthorized)).status, 401);
      assert.equal((await send(entry)).status, 200);
    });

    it("sends the refusal before it closes, to a client that reads only after sending everything", async () => {
      const { entry } = await open();
      const bytes = 4 * MAX_CALL_BYTES;
      for (const [line, status] of [
        [`Content-Length: ${bytes}`, "413 Payload Too Large"],
        [`Content-Length: ${bytes}\r\nOrigin: null`, "403 Forbidden"],
      ]) {
        const socket = connect(entry.port, "127.0.0.1");
        socket.write(head(entry).replace(/Content-Length: \d+/, line!));
        await new Promise((resolve) => socket.write(Buffer.alloc(bytes), resolve));
        assert.ok((await text(socket)).startsWith(`HTTP/1.1 ${status}\r\n`));
      }
    });

    it("refuses a body that grows too large before it ends", async () => {
      const { entry } = await open();
      const { client, answered } = start(entry, { headers: { "transfer-encoding": "chunked" } });
      client.write(Buffer.alloc(MAX_CALL_BYTES, " "));
      client.write(" ");
      const answer = await answered;
      assert.equal(answer.statusCode, 413);
      assert.deepEqual(handled, []);
      client.destroy();
      assert.equal((await send(entry)).status, 200);
    });

    it("accepts a body of exactly the allowed size", async () => {
      const { entry } = await open();
      const largest = body.padEnd(MAX_CALL_BYTES, " ");
      assert.equal((await send(entry, { body: largest })).status, 200);
      const headers = { "transfer-encoding": "chunked" };
      assert.equal((await send(entry, { body: largest, headers })).status, 200);
    });

    it("survives clients that don't speak HTTP or disconnect", async () => {
      const { entry } = await open();
      for (const data of [
        "\u0000\u0001\r\n\r\n",
        "CONNECT evil.example:80 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
      ]) {
        const socket = connect(entry.port, "127.0.0.1");
        socket.write(data);
        await once(socket.resume(), "close");
      }
      const socket = connect(entry.port, "127.0.0.1");
      socket.write(`${head(entry)}{`);
      await once(socket, "connect");
      socket.resetAndDestroy();
      assert.equal((await send(entry)).status, 200);
      assert.deepEqual(errors, []);
    });

    it("accepts calls while another program holds many connections without a token", async () => {
      const { entry } = await open();
      const strangers = Array.from({ length: 400 }, () =>
        connect(entry.port, "127.0.0.1").on("error", () => undefined),
      );
      try {
        await Promise.all(strangers.map((socket) => once(socket, "connect")));
        assert.equal((await send(entry)).status, 200);
      } finally {
        for (const socket of strangers) socket.destroy();
      }
    });

    for (const [what, data] of [
      ["says nothing", () => ""],
      ["sends its head slowly", () => "POST / HTTP/1.1\r\nHost: a\r\n"],
      ["sends its body slowly", (entry: EndpointEntry) => `${head(entry)}{`],
      [
        "does not finish its body after a refusal",
        (entry: EndpointEntry) => head(entry).replace(entry.token, "wrong") + body.slice(0, -1),
      ],
    ] as const)
      it(`closes the connection of a client that ${what}`, async () => {
        const { entry } = await open({ readTimeout: 1_000 });
        const socket = connect(entry.port, "127.0.0.1").on("error", () => undefined);
        socket.write(data(entry));
        await once(socket.resume(), "close");
        assert.equal((await send(entry)).status, 200);
        assert.deepEqual(handled, [call]);
      });
  });

  describe("while a call is waiting", () => {
    /** A call that is answered on demand. */
    async function waiting(options?: Partial<ToolEndpointOptions>) {
      const gone: AbortSignal[] = [];
      const finish: ((given: ToolResult) => void)[] = [];
      const opened = await open({
        handle: (_, signal) => {
          gone.push(signal);
          return new Promise((resolve) => finish.push(resolve));
        },
        ...options,
      });
      const { client, answered } = start(opened.entry);
      client.end(body);
      const answer = await answered;
      await until("the call", () => gone.length === 1);
      return { ...opened, client, answer, signal: gone[0]!, finish: finish[0]! };
    }

    it("has sent the head of its answer, and sends an empty line at intervals", async () => {
      const { answer, finish } = await waiting();
      assert.equal(answer.statusCode, 200);
      let received = "";
      answer.setEncoding("utf8").on("data", (part: string) => (received += part));
      await clock.advance(KEEP_ALIVE_MS - 1);
      assert.equal(received, "");
      for (const lines of ["\n", "\n\n", "\n\n\n"]) {
        await clock.advance(KEEP_ALIVE_MS);
        await until("a line", () => received === lines);
      }
      finish(result);
      await once(answer, "end");
      assert.equal(received, `\n\n\n${JSON.stringify(reply)}\n`);
      assert.equal(clock.pending, 0);
    });

    it("waits longer than a request may take to arrive", async () => {
      const { answer, entry, finish } = await waiting({ readTimeout: 1_000 });
      const silent = connect(entry.port, "127.0.0.1");
      await once(silent.resume(), "close");
      finish(result);
      assert.equal(await text(answer), `${JSON.stringify(reply)}\n`);
    });

    it("sends no more empty lines once it has answered, even if the answer is read slowly", async () => {
      const { answer, finish } = await waiting();
      const long = { ...result, text: "x".repeat(50_000_000) };
      finish(long);
      await until("the end of waiting", () => clock.pending === 0);
      await clock.advance(KEEP_ALIVE_MS);
      assert.equal(answer.complete, false);
      assert.equal(await text(answer), `${JSON.stringify({ type: "result", ...long })}\n`);
    });

    it("aborts its handler when the client disconnects", async () => {
      const { client, signal, finish, entry } = await waiting();
      assert.equal(signal.aborted, false);
      client.destroy();
      await until("the abort", () => signal.aborted);
      assert.equal(clock.pending, 0);
      finish(result);
      await clock.advance(2 * KEEP_ALIVE_MS);
      assert.deepEqual(errors, []);
      const { client: next, answered } = start(entry);
      next.end(body);
      assert.equal((await answered).statusCode, 200);
    });

    it("does not log an error of its handler after the client disconnected", async () => {
      let rejected = false;
      const { entry } = await open({
        handle: (_, signal) =>
          new Promise((_, reject) =>
            signal.addEventListener("abort", () => {
              rejected = true;
              reject(new Error("aborted"));
            }),
          ),
      });
      const { client, answered } = start(entry);
      client.end(body);
      await answered;
      client.destroy();
      await until("the abort", () => rejected);
      assert.equal((await send(entry, { method: "GET", body: "" })).status, 405);
      assert.deepEqual(errors, []);
    });

    it("closes everything at once when it is disposed", async () => {
      const { endpoint, entry, answer, signal, finish } = await waiting();
      const idle = connect(entry.port, "127.0.0.1").on("error", () => undefined);
      await once(idle, "connect");
      const idleEnd = once(idle.resume(), "close");
      endpoint.dispose();
      assert.deepEqual(readdirSync(stateFolder), []);
      await assert.rejects(text(answer), { code: "ECONNRESET" });
      await until("the abort", () => signal.aborted);
      assert.equal(clock.pending, 0);
      await idleEnd;
      await assert.rejects(send(entry), { code: "ECONNREFUSED" });
      finish(result);
      endpoint.dispose();
      assert.deepEqual(errors, []);
    });
  });

  describe("when a call fails", () => {
    const outcomes: readonly [what: string, error: unknown, message: RegExp, logged: number][] = [
      ["was refused", new Refusal("unknown-task", "There is no task x."), /^There is no task x\.$/, 0],
      [
        "was refused with a quoted line break",
        new Refusal("unknown-task", "There is no task x\n\ndata: y."),
        /^There is no task x data: y\.$/,
        0,
      ],
      [
        "the server failed to carry out",
        new ServerFailure("POST /session", "unreachable", "OpenCode does not answer."),
        /^OpenCode does not answer\.$/,
        0,
      ],
      [
        "couldn't be carried out by Git",
        new UserFacingError(sentence("Git failed: {0}", "Permission denied.")),
        /^Git failed: Permission denied\.$/,
        0,
      ],
      [
        "failed unexpectedly",
        new TypeError("x is undefined"),
        /^The call failed inside Async Agents; [^\n]+\.$/,
        1,
      ],
      ["failed without an error", undefined, /^The call failed inside Async Agents; /, 1],
    ];
    for (const [what, error, message, logged] of outcomes)
      it(`sends the model a message about a call that ${what}`, async () => {
        const { entry } = await open({
          handle: async () => {
            throw error;
          },
        });
        const answer = await send(entry);
        assert.equal(answer.status, 200);
        const told = replyIn(answer);
        assert.equal(told.type, "refused");
        assert.match((told as { message: string }).message, message);
        assert.equal(errors.length, logged);
        if (logged) assert.deepEqual(errors, [["The call of asyncagents_list failed.", error]]);
      });

    it("treats a handler that throws synchronously, or returns what JSON cannot hold, as failed", async () => {
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      let handle: ToolEndpointOptions["handle"] = () => {
        throw new Error("at once");
      };
      const { entry } = await open({ handle: (...args) => handle(...args) });
      assert.equal(replyIn(await send(entry)).type, "refused");
      handle = async () => ({ ...result, metadata: circular });
      assert.equal(replyIn(await send(entry)).type, "refused");
      assert.equal(errors.length, 2);
      handle = async () => result;
      assert.deepEqual(replyIn(await send(entry)), reply);
    });
  });

  it("says whether a file may be written, and allows it if the check fails", async () => {
    const write = { sessionID: "ses_1", paths: ["/work/a.txt"] };
    let failure: Error | undefined;
    const asked: unknown[] = [];
    let isOurs = true;
    const { entry } = await open({
      beginWrite: async (given) => {
        asked.push(given);
        if (failure) throw failure;
        return isOurs;
      },
    });
    const ask = async () =>
      replyIn(await send(entry, { path: FILE_WRITE_PATH, body: JSON.stringify(write) })).type;
    assert.equal(await ask(), "result");
    failure = new Refusal("stale-file", "Read it again.");
    assert.equal(await ask(), "refused");
    assert.deepEqual(errors, []);
    failure = new TypeError("x is undefined");
    assert.equal(await ask(), "result");
    assert.equal(errors.length, 1);
    [failure, isOurs] = [undefined, false];
    assert.equal(await ask(), "not-ours");
    assert.deepEqual(asked, [write, write, write, write]);
    assert.deepEqual(handled, []);
    assert.equal((await send(entry, { path: FILE_WRITE_PATH })).status, 400);
  });

  describe("when it cannot open, or is disposed", () => {
    const noPortLeft = () => until("the end of the port", () => listeners() === 0);

    it("leaves no entry and no port if it is disposed while it opens", async () => {
      const early = create();
      const opening = early.open();
      early.dispose();
      await opening;
      assert.throws(() => readdirSync(stateFolder), { code: "ENOENT" });

      const late = create();
      const publishing = late.open();
      await until("the entry's folder", () => statSync(stateFolder));
      late.dispose();
      await publishing;
      assert.deepEqual(readdirSync(stateFolder), []);
      await noPortLeft();
    });

    it("rejects and stops listening if its entry cannot be written", async () => {
      writeFileSync(stateFolder, "");
      await assert.rejects(create().open(), { code: "EEXIST" });
      await noPortLeft();
    });

    it("can be disposed before it was opened, twice, and without its folder", async () => {
      create().dispose();
      const { endpoint } = await open();
      rmSync(stateFolder, { recursive: true });
      endpoint.dispose();
      endpoint.dispose();
      await noPortLeft();
    });
  });
});

function authorizedBy({ token }: EndpointEntry): Sent {
  return { headers: { authorization: `Bearer ${token}` } };
}

/** Sends a valid call with these changes, and reads the whole answer. */
async function send(entry: EndpointEntry, sent: Sent = {}): Promise<Answer> {
  const { client, answered } = start(entry, {
    ...sent,
    headers: { "content-length": contentLength(sent), ...sent.headers },
  });
  client.end(sent.body ?? body);
  const answer = await answered;
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

function contentLength({ body: sent = body, headers }: Sent): string | undefined {
  return headers && "transfer-encoding" in headers ? undefined : String(Buffer.byteLength(sent));
}

function start(
  entry: EndpointEntry,
  { method = "POST", path = TOOL_CALL_PATH, headers = {} }: Sent = {},
): { client: ClientRequest; answered: Promise<IncomingMessage> } {
  const all: Record<string, string | undefined> = {
    host: `127.0.0.1:${entry.port}`,
    "content-type": "application/json",
    ...authorizedBy(entry).headers,
    ...headers,
  };
  const given: OutgoingHttpHeaders = Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined),
  );
  const client = request({ host: "127.0.0.1", port: entry.port, method, path, headers: given });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    client.once("response", resolve);
    // Once the answer has arrived, an error while still sending is irrelevant.
    client.on("error", reject);
  });
  return { client, answered };
}

/** The head of a valid call, as sent over the network. */
function head({ port, token }: EndpointEntry, version = "HTTP/1.1"): string {
  return [
    `POST ${TOOL_CALL_PATH} ${version}`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "\r\n",
  ].join("\r\n");
}

function replyIn(answer: Answer): ToolReply {
  return JSON.parse(answer.body) as ToolReply;
}

/** The number of ports that this process listens on. */
function listeners(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;
}
