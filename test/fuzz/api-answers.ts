import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { Emitter } from "../../src/engine/event.ts";
import { ServerFailure } from "../../src/engine/ports.ts";
import { OpenCodeAgentServer } from "../../src/opencode/agent-server.ts";
import { createClient } from "../../src/opencode/client.ts";
import { record } from "../unit/engine/builders.ts";
import { DEEP_JSON, hostileJson, hostileText, spoiled } from "./hostile.ts";
import { recorded } from "./samples.ts";
import type { OpenTarget, Target } from "./target.ts";

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Whether the connection breaks in the middle of the body. */
  readonly isCut: boolean;
}

type Call = (server: OpenCodeAgentServer) => Promise<unknown>;

const CALLS: readonly Call[] = [
  (server) => server.session("ses_1"),
  (server) => server.sessions(),
  (server) => server.messages("ses_1"),
  (server) => server.message("ses_1", "msg_1"),
  (server) => server.changes("ses_1", 0),
  (server) => server.statuses(),
  (server) => server.agents(),
  (server) => server.models(),
  (server) => server.pendingRequests(),
  (server) => server.createSession({ title: "A", agent: "build" }),
  (server) => server.saveRecord(record({ id: "ses_1" })),
  (server) => server.prompt("ses_1", { messageID: "msg_1", agent: "build", parts: [{ text: "Go." }] }),
  (server) => server.abort("ses_1"),
  (server) => server.canWriteHistory(),
];

const ALLOWED = { permission: "*", pattern: "*", action: "allow" };
const infos = recorded("message.updated", "info");
const parts = recorded("message.part.updated", "part");
const SAMPLES: readonly unknown[] = [
  ...recorded("session.updated", "info").slice(0, 3),
  recorded("session.updated", "info").slice(0, 3),
  infos.slice(0, 3).map((info, index) => ({ info, parts: parts.slice(index, index + 3) })),
  { info: infos[0], parts: parts.slice(0, 3) },
  { ses_1: { type: "busy" }, ses_2: { type: "retry", attempt: 1, message: "no", next: 5 } },
  [{ name: "build", mode: "primary", permission: [ALLOWED] }],
  { providers: [{ id: "p", name: "P", models: { m: { id: "m", name: "M", limit: { context: 5 } } } }] },
  [{ id: "per_1", sessionID: "ses_1", permission: "bash", patterns: ["*"], always: [], metadata: {} }],
  { name: "NotFoundError", data: { message: "no" } },
];

const answer: fc.Arbitrary<Answer> = fc.record({
  status: fc.oneof(
    { arbitrary: fc.constant(200), weight: 4 },
    fc.constantFrom(201, 204, 400, 401, 404, 500, 503),
  ),
  type: fc.oneof(
    { arbitrary: fc.constant("application/json"), weight: 6 },
    fc.constantFrom("text/html", "text/plain", "application/octet-stream", ""),
  ),
  body: fc.oneof(
    { arbitrary: spoiled(...SAMPLES).map((value) => JSON.stringify(value)), weight: 8 },
    hostileJson.map((value) => JSON.stringify(value)),
    hostileText,
    fc.constant(DEEP_JSON),
  ),
  isCut: fc.boolean().chain((isCut) => (isCut ? fc.boolean() : fc.constant(false))),
});

/** A call succeeds, or fails with a sentence that names it, whatever the server answers. */
export const apiAnswers: Target = {
  name: "api-answers",
  async open(): Promise<OpenTarget> {
    let current: Answer = { status: 200, type: "", body: "", isCut: false };
    const http = createServer((request, response) => {
      request.resume().once("end", () => send(response, current));
    }).listen(0, "127.0.0.1");
    await once(http, "listening");
    const { port } = http.address() as AddressInfo;
    const client = createClient({ url: `http://127.0.0.1:${port}`, username: "opencode" }, "/work");
    const events = new Emitter<never>((error) => {
      throw error;
    });
    const server = new OpenCodeAgentServer(
      () => client,
      events.event,
      () => 10_000,
    );
    return {
      property: fc.asyncProperty(fc.constantFrom(...CALLS), answer, async (call, given) => {
        current = given;
        try {
          await call(server);
        } catch (error) {
          assert.ok(error instanceof ServerFailure, String((error as Error | undefined)?.stack));
          assert.match(error.message, /^[^\n]{1,2000}$/);
        }
      }),
      close() {
        http.closeAllConnections();
        http.close();
      },
    };
  },
};

function send(response: ServerResponse, { status, type, body, isCut }: Answer): void {
  const bytes = Buffer.from(body);
  if (type) response.setHeader("content-type", type);
  response.writeHead(status, status === 204 ? {} : { "content-length": bytes.length });
  if (!isCut || status === 204) return void response.end(bytes);
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
}
