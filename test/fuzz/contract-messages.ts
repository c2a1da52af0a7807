import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import type { FolderCalls } from "../../src/rpc/contract.ts";
import { PROTOCOL_VERSION } from "../../src/rpc/contract.ts";
import { connectTo, DaemonFiles } from "../../src/rpc/daemon-files.ts";
import { DaemonServer } from "../../src/rpc/daemon-server.ts";
import { proofOf } from "../../src/rpc/proof.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { tempDir } from "../support/temp.ts";
import { FakeHost, FakeService, folder, settings } from "../unit/rpc/fake-host.ts";
import { hostileJson, hostileText, spoiled } from "./hostile.ts";
import type { OpenTarget, Target } from "./target.ts";

const directory = "/work";
const CALLS: readonly (readonly [string, readonly unknown[]])[] = [
  [
    "launch",
    [{ prompt: "Go.", parentSessionID: "ses_1", launchedBy: "person", fork: { sourceSessionID: "ses_1" } }],
  ],
  ["resume", ["ses_1", "Go on.", null]],
  ["cancel", ["ses_1", "person"]],
  ["clear", ["ses_1", { deleteSession: true }, "person"]],
  ["output", ["ses_1", { block: true, timeout: null }]],
  ["changes", ["ses_1", 0]],
  ["previewCall", ["asyncagents_clear", {}, null]],
  ["callTool", ["asyncagents_list", {}, "ses_1"]],
  ["planAgentTools", ["install", "user"]],
];
const REQUESTS: readonly unknown[] = [
  { method: "ping", params: {} },
  { method: "open", params: folder(directory) },
  { method: "reopen", params: { directory, env: {}, whatWasUsed: true } },
  { method: "findExecutable", params: { path: "/opencode", env: {} } },
  { method: "installCommand", params: { isPrivate: true, env: {} } },
  { method: "status", params: {} },
  { method: "stop", params: { directories: [directory] } },
  { method: "openConversation", params: { directory, key: 1, id: "ses_1" } },
  {
    method: "askConversation",
    params: { directory, key: 1, question: { type: "earlier", before: "prt_1" } },
  },
  { method: "openLink", params: { directory, key: 1, link: { type: "open-field", id: "prt_1", field: "" } } },
  ...CALLS.map(([method, args]) => ({ method: "call", params: { directory, method, args } })),
].map((request) => JSON.parse(JSON.stringify(request)) as unknown);
const NOTIFICATIONS: readonly unknown[] = [
  { method: "configure", params: { directory, settings } },
  { method: "closeConversation", params: { directory, key: 1 } },
];

/** Each request of a window is answered, with an error if it is spoiled, and the daemon goes on with the next. */
export const contractMessages: Target = {
  name: "contract-messages",
  async open(): Promise<OpenTarget> {
    const errors: string[] = [];
    const stateFolder = join(tempDir("fuzz"), "state");
    const server = await DaemonServer.open({
      stateFolder,
      host: new FakeHost(new FakeService(everyCall)),
      version: "1.0.0",
      clock: new ManualClock(),
      logger: { debug() {}, info() {}, warn() {}, error: (_, error) => errors.push(String(error)) },
    });
    const entry = await new DaemonFiles(stateFolder).read();
    assert.ok(server && entry);
    const { socket: path, token } = entry;

    async function connected(): Promise<Client> {
      const socket = await connectTo(path);
      assert.ok(socket);
      const client = new Client(socket);
      const proof = proofOf(token, "window", "n");
      const params = { nonce: "n", proof, protocol: PROTOCOL_VERSION, version: "1.0.0", pid: 1 };
      assert.ok("result" in (await client.request({ method: "hello", params })));
      assert.ok("result" in (await client.request({ method: "open", params: folder(directory) })));
      return client;
    }

    let window = await connected();
    const message = fc.oneof(
      { arbitrary: spoiled(...REQUESTS), weight: 9 },
      {
        arbitrary: spoiled(...NOTIFICATIONS).map((each) => ({ ...(each as object), isNotification: true })),
        weight: 2,
      },
      hostileJson,
    );
    return {
      property: fc.asyncProperty(
        message,
        fc.oneof({ arbitrary: fc.constant(undefined), weight: 30 }, hostileText),
        async (sent, garbage) => {
          const { method, isNotification, ...rest } = Object(sent) as Record<string, unknown>;
          const isMessage = typeof method === "string" && (rest["params"] ?? false) instanceof Object;
          if (isMessage && !isNotification) {
            const answer = await window.request({ method, ...rest });
            if (answer.error) assert.match(answer.error.message, /\S/);
          } else window.send(isNotification ? { method, ...rest } : sent);
          if (garbage !== undefined) window.write(garbage);
          const isServed = garbage === undefined && (await window.isServed());
          // What is no message may end its own connection, but no other.
          if (isMessage && garbage === undefined) assert.ok(isServed);
          if (isServed) return;
          window.close();
          window = await connected();
        },
      ),
      async close() {
        assert.ok(await window.isServed());
        assert.deepEqual(
          errors.filter((error) => !error.startsWith("Refusal")),
          [],
        );
        window.close();
        server.dispose();
      },
    };
  },
};

/** A folder that carries out every call. */
const everyCall = new Proxy({} as FolderCalls, { get: () => () => Promise.resolve(null) });

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** A window that sends what it is given, valid or not. */
class Client {
  private readonly waiting = new Map<number, (answer: Answer | undefined) => void>();
  private unread = Buffer.alloc(0);
  private lastID = 0;
  private isClosed = false;

  constructor(private readonly socket: Socket) {
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => this.read(bytes));
    socket.once("close", () => {
      this.isClosed = true;
      for (const resolve of this.waiting.values()) resolve(undefined);
    });
  }

  async request(message: object): Promise<Answer> {
    const answer = await this.answered(message);
    assert.ok(answer, "The connection was closed by a request.");
    return answer;
  }

  /** Whether the connection still works. */
  async isServed(): Promise<boolean> {
    return (await this.answered({ method: "ping", params: {} })) !== undefined;
  }

  send(message: unknown): void {
    const text = JSON.stringify(
      typeof message === "object" && !Array.isArray(message) ? { jsonrpc: "2.0", ...message } : message,
    );
    this.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  write(text: string): void {
    this.socket.write(text);
  }

  close(): void {
    this.socket.destroy();
  }

  private answered(message: object): Promise<Answer | undefined> {
    if (this.isClosed) return Promise.resolve(undefined);
    const id = ++this.lastID;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send({ ...message, id });
    });
  }

  private read(bytes: Buffer): void {
    this.unread = Buffer.concat([this.unread, bytes]);
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(this.unread.toString("latin1"));
      const end = head && head[0].length + Number(head[1]);
      if (!end || this.unread.length < end) return;
      const answer = JSON.parse(this.unread.subarray(head[0].length, end).toString()) as Answer;
      this.unread = this.unread.subarray(end);
      this.waiting.get(answer.id ?? -1)?.(answer);
      this.waiting.delete(answer.id ?? -1);
    }
  }
}
