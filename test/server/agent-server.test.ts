import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ABORTED } from "../../src/engine/server-model.ts";
import { freshID } from "../../src/engine/ids.ts";
import { ServerFailure } from "../../src/engine/ports.ts";
import type { TaskRecord, TaskRecordDraft } from "../../src/engine/task.ts";
import { createClient } from "../../src/opencode/client.ts";
import { OpenCodeAgentServer } from "../../src/opencode/agent-server.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { script } from "../support/scripted-model.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

const noEvents = () => ({ dispose() {} });
const MODEL = { providerID: "fake", modelID: "m" };

const draft = (parentSessionID: string): TaskRecordDraft => ({
  revision: 1,
  description: "a task",
  agent: "build",
  parentSessionID,
  launchedBy: "person",
  isForked: false,
  batchID: "bat_1",
  toolCalls: 0,
  resumeCount: 0,
  status: "running",
  promptMessageID: "msg_1",
  createdAt: 1,
  startedAt: 1,
  notice: { state: "none" },
});

function failing(reason: ServerFailure["reason"], message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof ServerFailure, String(error));
    assert.equal(error.reason, reason);
    assert.match(error.message, message);
    return true;
  };
}

/** What the pattern's group matches first in a stream. */
async function firstMatch({ body }: Response, pattern: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let read = "";
  for await (const bytes of body ?? []) {
    read += decoder.decode(bytes, { stream: true });
    const found = pattern.exec(read)?.[1];
    if (found !== undefined) return found;
  }
  return assert.fail(`Nothing matches ${String(pattern)}.`);
}

describe("Agent server", function () {
  this.timeout(60_000);
  let model: ScriptedModel;
  let opencode: OpenCodeServer;
  let server: OpenCodeAgentServer;

  const serverFor = (password = opencode.password, url = opencode.url) => {
    const client = createClient({ url, username: "opencode", password }, opencode.directory);
    return new OpenCodeAgentServer(() => client, noEvents);
  };

  setUp(async (start) => {
    model = await start.model();
    opencode = await start.server({ model });
    server = serverFor();
  });
  async function patchMetadata(sessionID: string, metadata: unknown) {
    const init = { method: "PATCH", headers: { "content-type": "application/json" } };
    await opencode.fetch(`/session/${sessionID}`, { ...init, body: JSON.stringify({ metadata }) });
  }
  async function metadataOf(sessionID: string) {
    const session = (await (await opencode.fetch(`/session/${sessionID}`)).json()) as { metadata: unknown };
    return session.metadata as Record<string, Record<string, unknown>>;
  }
  async function newTask(): Promise<TaskRecord> {
    const parent = await server.createSession({ title: "parent" });
    const child = await server.createSession({ title: "child", parentID: parent.id, task: draft(parent.id) });
    assert.ok(child.task.kind === "task");
    return child.task.record;
  }

  it("creates a session that is a task from the start", async () => {
    const record = await newTask();
    const found = await server.session(record.id);
    assert.deepEqual(found?.task, { kind: "task", record });
    assert.equal(found?.parentID, record.parentSessionID);
    const listed = (await server.sessions()).find(({ id }) => id === record.id);
    assert.deepEqual(listed?.task, { kind: "task", record });
  });

  it("passes agent, model and permission rules to the session", async () => {
    const permission = [{ permission: "asyncagents_*", pattern: "*", action: "deny" as const }];
    const { id } = await server.createSession({ title: "t", agent: "plan", model: MODEL, permission });
    const stored = (await (await opencode.fetch(`/session/${id}`)).json()) as Record<string, unknown>;
    assert.equal(stored.agent, "plan");
    assert.deepEqual(stored.permission, permission);
    assert.deepEqual((await server.session(id))?.model, MODEL);
  });

  it("saves a record and keeps what others store beside it", async () => {
    const record = await newTask();
    await patchMetadata(record.id, { ...(await metadataOf(record.id)), other: { kept: true } });
    const saved = await server.saveRecord({ ...record, revision: 2, status: "completed" });
    assert.ok(saved?.task.kind === "task");
    assert.equal(saved.task.record.status, "completed");
    const metadata = await metadataOf(record.id);
    assert.deepEqual(metadata.other, { kept: true });
    assert.equal(metadata.asyncagents?.id, record.id);
    assert.equal(metadata.asyncagents?.v, 1);
  });

  it("writes records of one session in the order of the calls", async () => {
    const record = await newTask();
    const revisions = Array.from({ length: 10 }, (_, index) => index + 2);
    const saved = await Promise.all(revisions.map((revision) => server.saveRecord({ ...record, revision })));
    assert.deepEqual(
      saved.map((session) => session?.task.kind === "task" && session.task.record.revision),
      revisions,
    );
    assert.equal((await metadataOf(record.id)).asyncagents?.revision, 11);
  });

  it("does not overwrite a record that it cannot read", async () => {
    const record = await newTask();
    const newer = { asyncagents: { v: 2, id: record.id } };
    await patchMetadata(record.id, newer);
    await assert.rejects(server.saveRecord(record), failing("refused", /newer version/));
    assert.deepEqual(await metadataOf(record.id), newer);
    assert.equal((await server.session(record.id))?.task.kind, "unreadable");
  });

  it("does not overwrite a later revision, and accepts the same write twice", async () => {
    const record = await newTask();
    const later = { ...record, revision: record.revision + 2, description: "later" };
    await server.saveRecord(later);
    await server.saveRecord(later);
    await assert.rejects(server.saveRecord({ ...record, revision: record.revision + 1 }), /Another window/);
    const session = await server.session(record.id);
    assert.ok(session?.task.kind === "task" && session.task.record.description === "later");
  });

  it("does not take a forked session for the task whose metadata it copied", async () => {
    const record = await newTask();
    await server.saveRecord({ ...record, revision: record.revision + 1 });
    const forked = await opencode.fetch(`/session/${record.id}/fork`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const { id } = (await forked.json()) as { id: string };
    assert.deepEqual((await server.session(id))?.task, { kind: "none" });
    const own = await server.saveRecord({ ...record, id, isForked: true });
    assert.ok(own?.task.kind === "task" && own.task.record.id === id);
  });

  it("returns undefined for what doesn't exist", async () => {
    const record = await newTask();
    assert.equal(await server.session("ses_none"), undefined);
    assert.equal(await server.message(record.id, "msg_none"), undefined);
    assert.equal(await server.saveRecord({ ...record, id: "ses_none" }), undefined);
    await server.deleteSession(record.id);
    assert.equal(await server.session(record.id), undefined);
    await server.deleteSession(record.id);
  });

  it("a prompt is answered although its ID is older than that of the last answer, as a notification's can be", async () => {
    const { id } = await server.createSession({ title: "t" });
    const ask = async (at: number): Promise<void> => {
      const messageID = freshID("msg", at, Math.random);
      await server.prompt(id, {
        messageID,
        agent: "build",
        model: MODEL,
        parts: [{ text: script([{ text: "Yes." }]) }],
      });
      await until("the answer", async () =>
        (await server.messages(id)).some(
          ({ info }) =>
            info.role === "assistant" && info.parentID === messageID && info.completed !== undefined,
        ),
      );
    };
    const now = Date.now();
    await ask(now);
    await ask(now - 1_000);
  });

  it("prompts, follows the turn by status and reads its messages, oldest first", async () => {
    const { id } = await server.createSession({ title: "t" });
    const messageID = freshID("msg", Date.now(), Math.random);
    const text = script([{ text: "halfway", gate: "middle" }], "go ");
    await server.prompt(id, {
      messageID,
      agent: "build",
      model: MODEL,
      parts: [{ text, id: "prt_1" }],
    });
    await until("busy", async () => (await server.statuses()).get(id)?.type === "busy");
    model.release("middle");
    const last = await until("the answer", async () => {
      const message = (await server.messages(id)).at(-1);
      return message?.info.role === "assistant" && message.info.completed !== undefined && message;
    });
    assert.ok(last.info.role === "assistant");
    assert.equal(last.info.parentID, messageID);
    assert.deepEqual(last.info.model, MODEL);
    assert.ok(last.parts.some((part) => part.type === "text" && part.text === "halfway"));
    const all = await server.messages(id);
    assert.deepEqual(
      all.map(({ info }) => info.role),
      ["user", "assistant"],
    );
    const newest = await server.messages(id, 1);
    assert.deepEqual(
      newest.map(({ info }) => info.id),
      [last.info.id],
    );
    assert.deepEqual(await server.message(id, last.info.id), last);
  });

  it("stores a prompt without running it, and starts it later by its ID alone", async () => {
    const { id } = await server.createSession({ title: "t" });
    const prompt = { messageID: "msg_stored", agent: "build", model: MODEL };
    const parts = [
      { text: "hello", metadata: { mark: 1 } },
      { text: "hidden", synthetic: true },
    ];
    await server.prompt(id, { ...prompt, parts, noReply: true });
    const stored = await until("the stored message", async () => {
      const message = await server.message(id, "msg_stored");
      return message?.parts.length === parts.length && message;
    });
    assert.deepEqual(
      stored.parts.map((part) => part.type === "text" && [part.text, part.synthetic, part.metadata]),
      [
        ["hello", false, { mark: 1 }],
        ["hidden", true, undefined],
      ],
    );
    await server.prompt(id, { ...prompt, parts: [] });
    await until("the answer", async () => (await server.messages(id)).at(-1)?.info.role === "assistant");
  });

  it("aborts a turn", async () => {
    const { id } = await server.createSession({ title: "t" });
    const parts = [{ text: script([{ gate: "never", text: "x" }]) }];
    await server.prompt(id, { messageID: "msg_a", agent: "build", model: MODEL, parts });
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    await server.abort(id);
    const error = await until("the abort", async () => {
      const info = (await server.messages(id)).at(-1)?.info;
      return info?.role === "assistant" && info.error;
    });
    assert.equal(error.name, ABORTED);
  });

  it("lists requests even while OpenCode cannot list its permissions", async () => {
    const permission = [{ permission: "glob", pattern: "*", action: "ask" as const }];
    const { id } = await server.createSession({ title: "t", permission });
    const events = await opencode.fetch("/event");
    const parts = [
      { text: script([{ tools: [{ name: "glob", args: { pattern: "*.ts" } }] }, { text: "done" }]) },
    ];
    await server.prompt(id, { messageID: "msg_glob", agent: "build", model: MODEL, parts });
    const requestID = await firstMatch(events, /"permission\.asked","properties":\{"id":"(\w+)"/);
    assert.equal((await opencode.fetch("/permission")).status, 400);
    assert.deepEqual(await server.pendingRequests(), []);
    const body = JSON.stringify({ reply: "once" });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    assert.ok((await opencode.fetch(`/permission/${requestID}/reply`, init)).ok);
  });

  it("answers and dismisses permissions and questions", async () => {
    let asked = 0;
    const ask = async (name: string, args: Readonly<Record<string, unknown>>) => {
      const permission = [{ permission: "bash", pattern: "*", action: "ask" as const }];
      const { id } = await server.createSession({ title: name, permission });
      const parts = [{ text: script([{ tools: [{ name, args }] }, { text: "done" }]) }];
      await server.prompt(id, { messageID: `msg_ask${++asked}`, agent: "build", model: MODEL, parts });
      return until("the request", async () =>
        (await server.pendingRequests()).find(({ sessionID }) => sessionID === id),
      );
    };
    const closed = (requestID: string) =>
      until("the end of the request", async () =>
        (await server.pendingRequests()).every(({ id }) => id !== requestID),
      );
    const command = { command: "echo hi", description: "hi" };
    const permission = await ask("bash", command);
    assert.ok(permission.type === "permission");
    assert.equal(permission.permission, "bash");
    assert.deepEqual(permission.patterns, ["echo hi"]);
    assert.match(permission.call?.callID ?? "", /^call_/);
    await assert.rejects(server.answer(permission, { type: "question", answers: [] }), TypeError);
    await server.answer(permission, { type: "permission", reply: "once" });
    await closed(permission.id);
    await assert.rejects(
      server.answer(permission, { type: "dismiss" }),
      failing("not-found", /Permission request/),
    );

    const dismissed = await ask("bash", command);
    await server.answer(dismissed, { type: "dismiss" });
    await closed(dismissed.id);

    const options = [
      { label: "A", description: "a" },
      { label: "B", description: "b" },
    ];
    const which = { questions: [{ question: "Which?", header: "Pick", options }] };
    const question = await ask("question", which);
    assert.ok(question.type === "question");
    assert.deepEqual(question.questions, [{ ...which.questions[0], multiple: false, custom: true }]);
    await server.answer(question, { type: "question", answers: [["B"]] });
    await closed(question.id);
    const another = await ask("question", which);
    await server.answer(another, { type: "dismiss" });
    await closed(another.id);
  });

  it("lists permissions and questions in the order in which they were asked", async () => {
    const asked: string[] = [];
    const which = { questions: [{ question: "Which?", header: "Pick", options: [] }] };
    const command = { command: "echo hi", description: "hi" };
    for (const [name, args] of [
      ["question", which],
      ["bash", command],
      ["question", which],
    ] as const) {
      const permission = [{ permission: "bash", pattern: "*", action: "ask" as const }];
      const { id } = await server.createSession({ title: name, permission });
      const parts = [{ text: script([{ tools: [{ name, args }] }]) }];
      await server.prompt(id, {
        messageID: `msg_order${asked.push(id)}`,
        agent: "build",
        model: MODEL,
        parts,
      });
      await until("the request", async () => (await server.pendingRequests()).length === asked.length);
    }
    const open = await server.pendingRequests();
    assert.deepEqual(
      open.map(({ sessionID }) => sessionID),
      asked,
    );
    for (const request of open) await server.answer(request, { type: "dismiss" });
  });

  it("lists agents and models", async () => {
    const agents = await server.agents();
    assert.equal(agents.find(({ name }) => name === "build")?.mode, "primary");
    assert.equal(agents.find(({ name }) => name === "title")?.hidden, true);
    const models = await server.models();
    assert.deepEqual(
      models.find(({ ref }) => ref.modelID === "m"),
      { ref: MODEL, name: "Fake M", provider: "Fake", contextLimit: 200_000 },
    );
  });

  it("works in its own folder, even with special characters in the name", async () => {
    const directory = join(tempDir(), "Übung 1 & %41");
    mkdirSync(directory);
    const { url, password } = opencode;
    const client = createClient({ url, username: "opencode", password }, directory);
    const elsewhere = new OpenCodeAgentServer(() => client, noEvents);
    const session = await elsewhere.createSession({ title: "elsewhere" });
    assert.equal(session.directory, directory);
    assert.deepEqual(
      (await elsewhere.sessions()).map(({ id }) => id),
      [session.id],
    );
    assert.ok((await server.sessions()).every(({ id }) => id !== session.id));
  });

  it("names the call and the reason of a failure", async () => {
    await assert.rejects(
      server.messages("ses_none"),
      failing("not-found", /GET \/session\/ses_none\/message.*404/),
    );
    await assert.rejects(serverFor("wrong").agents(), failing("unauthorized", /GET \/agent/));
    await assert.rejects(
      serverFor("x", "http://127.0.0.1:9").agents(),
      failing("unreachable", /GET \/agent/),
    );
    const disconnected = new OpenCodeAgentServer(() => undefined, noEvents);
    await assert.rejects(disconnected.sessions(), failing("unreachable", /connection to OpenCode was lost/));
  });
});

describe("Agent server: invalid answers", () => {
  let answer: { status?: number; type?: string; body: string };
  let server: OpenCodeAgentServer;
  const http = createServer((_, response) => {
    response.writeHead(answer.status ?? 200, { "content-type": answer.type ?? "application/json" });
    response.end(answer.body);
  });

  before(async () => {
    await once(http.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    const client = createClient({ url, username: "opencode" }, "/work");
    server = new OpenCodeAgentServer(() => client, noEvents);
  });
  after(() => {
    http.closeAllConnections();
    http.close();
  });

  const session = { id: "ses_1", title: "t", directory: "/w", time: { created: 1, updated: 1 } };
  const user = { id: "msg_1", sessionID: "ses_1", role: "user", agent: "build", time: { created: 1 } };
  const json = (body: unknown) => ({ body: JSON.stringify(body) });

  const cases: [string, typeof answer, (one: OpenCodeAgentServer) => Promise<unknown>, RegExp][] = [
    [
      "a missing field",
      json({ ...session, title: undefined }),
      (one) => one.session("ses_1"),
      /GET \/session\/ses_1.*"title"/,
    ],
    [
      "a field in a list",
      json([session, { ...session, time: {} }]),
      (one) => one.sessions(),
      /GET \/session: "\[1\]\.time\.created"/,
    ],
    [
      "an unknown role",
      json([{ info: { ...user, role: "ghost" }, parts: [] }]),
      (one) => one.messages("ses_1"),
      /"\[0\]\.info/,
    ],
    ["null", json(null), (one) => one.agents(), /GET \/agent.*the answer is not/],
    ["a web page", { type: "text/html", body: "<html>" }, (one) => one.agents(), /GET \/agent.*web page/],
    ["broken JSON", { body: "[{" }, (one) => one.agents(), /Couldn't read .*GET \/agent/],
  ];
  for (const [what, given, ask, message] of cases)
    it(`names the call and the field: ${what}`, async () => {
      answer = given;
      await assert.rejects(ask(server), failing("unexpected-answer", message));
    });

  it("keeps the message of a part in an unknown shape", async () => {
    const part = { type: "text", id: "p", sessionID: "s", messageID: "m", text: 7 };
    answer = json([{ info: user, parts: [part] }]);
    const [message] = await server.messages("ses_1");
    assert.deepEqual(message?.parts, [
      { type: "other", kind: "text", id: "p", sessionID: "s", messageID: "m" },
    ]);
  });

  it("accepts unknown fields and parts", async () => {
    const part = { type: "hologram", id: "p", sessionID: "s", messageID: "m", depth: 3 };
    answer = json([{ info: { ...user, mood: "good" }, parts: [part] }]);
    const [message] = await server.messages("ses_1");
    assert.deepEqual(message?.parts, [
      { type: "other", kind: "hologram", id: "p", sessionID: "s", messageID: "m" },
    ]);
  });

  it("passes on the server's own error message", async () => {
    answer = { status: 500, ...json({ name: "UnknownError", data: { message: "model went missing" } }) };
    await assert.rejects(server.agents(), failing("refused", /HTTP 500.*model went missing/));
    answer = { status: 502, type: "text/plain", body: "" };
    await assert.rejects(server.agents(), failing("refused", /HTTP 502/));
  });
});
