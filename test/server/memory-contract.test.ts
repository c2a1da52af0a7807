import assert from "node:assert/strict";
import { hasArrived } from "../../src/engine/arrival.ts";
import { ServerFailure, type AgentServer } from "../../src/engine/ports.ts";
import { ABORTED, type Message } from "../../src/engine/server-model.ts";
import { answerText } from "../../src/engine/turn.ts";
import { OpenCodeAgentServer } from "../../src/opencode/agent-server.ts";
import { createClient } from "../../src/opencode/client.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { startOpenCode } from "../support/opencode.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

/** A server, and what the tests need besides its interface. */
interface Subject {
  readonly server: AgentServer;
  /** The text of a prompt whose turn runs until {@link finish}; it answers "Done.". */
  prompt(gate: string): string;
  finish(sessionID: string, gate: string): void;
  /** Each step of a turn waits for a `finish` of its own. */
  readonly needsEveryStep: boolean;
  metadata(sessionID: string): Promise<Readonly<Record<string, unknown>>>;
  setMetadata(sessionID: string, metadata: Readonly<Record<string, unknown>>): Promise<void>;
  close(): Promise<void>;
}

async function openCode(): Promise<Subject> {
  const model = await startScriptedModel();
  const opencode = await startOpenCode({ model });
  const { url, password, directory } = opencode;
  const client = createClient({ url, username: "opencode", password }, directory);
  return {
    server: new OpenCodeAgentServer(
      () => client,
      () => ({ dispose: () => undefined }),
    ),
    prompt: (gate) => script([{ text: "Done.", gate }]),
    finish: (_, gate) => model.release(gate),
    needsEveryStep: false,
    async metadata(sessionID) {
      const answer = (await (await opencode.fetch(`/session/${sessionID}`)).json()) as {
        metadata: Record<string, unknown>;
      };
      return answer.metadata;
    },
    async setMetadata(sessionID, metadata) {
      await opencode.fetch(`/session/${sessionID}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ metadata }),
      });
    },
    async close() {
      await opencode.stop();
      await model.stop();
    },
  };
}

async function memory(): Promise<Subject> {
  const server = new MemoryServer();
  return Promise.resolve({
    server,
    prompt: () => "Do it.",
    finish: (sessionID: string) => server.finish(sessionID, "Done."),
    needsEveryStep: true,
    metadata: async (sessionID: string) => Promise.resolve(server.metadata(sessionID) ?? {}),
    async setMetadata(sessionID: string, metadata: Readonly<Record<string, unknown>>) {
      const session = await server.session(sessionID);
      if (session) server.put(session, metadata);
    },
    close: async () => Promise.resolve(),
  });
}

const textsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])));
const roles = (messages: readonly Message[]): string[] => messages.map(({ info }) => info.role);

for (const [name, open] of Object.entries({ openCode, memory }))
  describe(`Agent server contract: ${name}`, () => {
    let subject: Subject;
    let server: AgentServer;
    let made = 0;

    before(async () => {
      subject = await open();
      server = subject.server;
    });
    after(() => subject?.close());

    /** Message IDs are unique per server: one that exists in another session has no effect here. */
    const envelope = () => ({ messageID: `msg_contract${++made}`, agent: "build" });
    const busy = (id: string) =>
      until("the turn to begin", async () => (await server.statuses()).get(id)?.type === "busy");
    const idle = (id: string) => until("the turn to end", async () => !(await server.statuses()).has(id));
    /** The message once it is stored completely: its parts follow it. */
    const arrived = (id: string, messageID: string): Promise<Message> =>
      until("the message", async () => {
        const message = await server.message(id, messageID);
        return hasArrived(message) && message;
      });
    const newSession = async (): Promise<string> => (await server.createSession({ title: "t" })).id;
    const newTask = async () => {
      const parent = await newSession();
      // The server chooses the ID.
      const draft = { ...record({ agent: "build", parentSessionID: parent }), id: undefined };
      const session = await server.createSession({
        title: "task",
        parentID: parent,
        agent: "build",
        task: draft,
      });
      assert.ok(session.task.kind === "task");
      return session.task.record;
    };
    /** A session whose turn runs until `finish` is called. */
    const working = async (): Promise<{ id: string; messageID: string; finish: () => void }> => {
      const id = await newSession();
      const gate = `contract-${++made}`;
      const prompt = envelope();
      await server.prompt(id, { ...prompt, parts: [{ text: subject.prompt(gate) }] });
      await until("the answer to be begun", async () => (await server.messages(id)).length === 2);
      return { id, messageID: prompt.messageID, finish: () => subject.finish(id, gate) };
    };
    const failing = (reason: ServerFailure["reason"]) => (error: unknown) =>
      error instanceof ServerFailure && error.reason === reason;

    it("returns what it created", async () => {
      const task = await newTask();
      const found = await server.session(task.id);
      assert.deepEqual(found?.task, { kind: "task", record: task });
      assert.equal(found?.parentID, task.parentSessionID);
      const listed = (await server.sessions()).filter(
        ({ id }) => id === task.id || id === task.parentSessionID,
      );
      assert.deepEqual(listed.map(({ task }) => task.kind).sort(), ["none", "task"]);
    });

    it("creates a session in the directory that is asked for", async () => {
      const directory = tempDir("elsewhere");
      const { id } = await server.createSession({ title: "Elsewhere", directory });
      assert.equal((await server.session(id))?.directory, directory);
    });

    it("returns a session with its rules, to which it adds others", async () => {
      const rules = ["bash", "edit"].map((permission) => ({
        permission,
        pattern: "*",
        action: "deny" as const,
      }));
      const created = await server.createSession({ title: "t", permission: rules.slice(0, 1) });
      assert.deepEqual(created.permission, rules.slice(0, 1));
      assert.deepEqual((await server.restrict(created.id, rules.slice(1))).permission, rules);
      assert.deepEqual((await server.session(created.id))?.permission, rules);
      const listed = (await server.sessions()).find(({ id }) => id === created.id);
      assert.deepEqual(listed?.permission, rules);
      const { id } = await server.createSession({ title: "t" });
      assert.deepEqual((await server.session(id))?.permission, []);
    });

    it("keeps the file that is sent with a prompt", async () => {
      const id = await newSession();
      const file = { url: import.meta.url, mime: "text/plain", filename: "this.ts" };
      const prompt = envelope();
      await server.prompt(id, { ...prompt, parts: [{ text: "Read it." }], files: [file], noReply: true });
      const message = await arrived(id, prompt.messageID);
      assert.deepEqual(
        message.parts.flatMap((part) =>
          part.type === "file" ? [{ url: part.url, mime: part.mime, filename: part.filename }] : [],
        ),
        [file],
      );
      assert.equal(answerText(message), "Read it.");
    });

    it("replaces a record and keeps other metadata", async () => {
      const task = await newTask();
      await subject.setMetadata(task.id, { ...(await subject.metadata(task.id)), other: { kept: true } });
      const saved = await server.saveRecord({ ...task, revision: 2, status: "completed" });
      assert.ok(saved?.task.kind === "task");
      assert.equal(saved.task.record.status, "completed");
      assert.deepEqual((await subject.metadata(task.id)).other, { kept: true });
      assert.equal(await server.saveRecord({ ...task, id: "ses_none" }), undefined);
    });

    it("does not overwrite a record that it cannot read", async () => {
      const task = await newTask();
      await subject.setMetadata(task.id, { asyncagents: { v: 99, id: task.id } });
      await assert.rejects(server.saveRecord(task), failing("refused"));
      assert.equal((await server.session(task.id))?.task.kind, "unreadable");
    });

    it("stores a prompt without running it, and starts it by its ID, once", async () => {
      const id = await newSession();
      const gate = `contract-${++made}`;
      const prompt = envelope();
      await server.prompt(id, { ...prompt, parts: [{ text: subject.prompt(gate) }], noReply: true });
      await arrived(id, prompt.messageID);
      assert.ok(!(await server.statuses()).has(id));
      const start = (): Promise<void> => server.prompt(id, { ...prompt, parts: [] });
      await start();
      await busy(id);
      await start();
      subject.finish(id, gate);
      await idle(id);
      await start();
      await idle(id);
      const messages = await server.messages(id);
      assert.deepEqual(roles(messages), ["user", "assistant"]);
      assert.equal(messages[0]?.parts.length, 1);
    });

    it("stores a part with the same ID only once", async () => {
      const id = await newSession();
      const prompt = { ...envelope(), parts: [{ id: "prt_twice", text: "x" }], noReply: true };
      await server.prompt(id, prompt);
      await server.prompt(id, prompt);
      assert.equal((await arrived(id, prompt.messageID)).parts.length, 1);
    });

    it("returns the parts of a message in the order of their IDs, not in the order of sending", async () => {
      const id = await newSession();
      const prompt = envelope();
      const parts = [
        { id: "prt_order2", text: "second", synthetic: true },
        { id: "prt_order1", text: "first" },
      ];
      await server.prompt(id, { ...prompt, parts, noReply: true });
      const message = await until("both parts", async () => {
        const stored = await server.message(id, prompt.messageID);
        return stored?.parts.length === 2 && stored;
      });
      assert.deepEqual(textsOf([message]), ["first", "second"]);
    });

    it("keeps a message without parts, and accepts them later", async () => {
      const id = await newSession();
      const prompt = envelope();
      await server.prompt(id, { ...prompt, parts: [], noReply: true });
      const message = await until("the message", () => server.message(id, prompt.messageID));
      assert.deepEqual(message.parts, []);
      await server.prompt(id, { ...prompt, parts: [{ id: "prt_later", text: "x" }], noReply: true });
      await until("the part", async () => (await server.message(id, prompt.messageID))?.parts.length === 1);
      assert.equal((await server.messages(id)).length, 1);
    });

    it("lists messages oldest first, and with a limit the newest of them", async () => {
      const { id, messageID, finish } = await working();
      finish();
      await idle(id);
      const messages = await server.messages(id);
      assert.deepEqual(roles(messages), ["user", "assistant"]);
      const [, answer] = messages;
      assert.ok(answer?.info.role === "assistant");
      assert.equal(answer.info.parentID, messageID);
      assert.equal(answer.info.finish, "end");
      assert.notEqual(answer.info.completed, undefined);
      assert.deepEqual(
        (await server.messages(id, 1)).map(({ info }) => info.id),
        [answer.info.id],
      );
      assert.deepEqual(await server.message(id, answer.info.id), answer);
    });

    it("lets a message sent to a busy session join its turn", async () => {
      const { id, messageID, finish } = await working();
      const joining = envelope();
      await server.prompt(id, { ...joining, parts: [{ text: "And this." }], noReply: true });
      await arrived(id, joining.messageID);
      finish();
      await until("the second answer", async () => (await server.messages(id)).length === 4);
      if (subject.needsEveryStep) finish();
      await idle(id);
      const answers = (await server.messages(id)).flatMap(({ info }) =>
        info.role === "assistant" ? [info] : [],
      );
      assert.deepEqual(
        answers.map(({ parentID }) => parentID),
        [messageID, joining.messageID],
      );
    });

    it("ends an aborted turn with an error in its message", async () => {
      const { id } = await working();
      await server.abort(id);
      const info = await until("the end of the message", async () => {
        const last = (await server.messages(id)).at(-1)?.info;
        return last?.role === "assistant" && last.completed !== undefined && last;
      });
      assert.equal(info.error?.name, ABORTED);
      assert.equal(info.finish, undefined);
      assert.ok(!(await server.statuses()).has(id));
    });

    it("stores nothing of a prompt for an unknown agent", async () => {
      const id = await newSession();
      await server.prompt(id, { ...envelope(), agent: "nobody", parts: [{ text: "x" }] });
      assert.ok(!(await server.statuses()).has(id));
      assert.deepEqual(await server.messages(id), []);
    });

    it("lists the default agent of subagents first, and those that aren't made for tasks last", async () => {
      const agents = await server.agents();
      assert.equal(agents[0]?.name, "general");
      const modes = agents.map(({ mode }) => mode);
      assert.ok(modes.includes("primary"));
      assert.ok(modes.slice(modes.indexOf("primary")).every((mode) => mode === "primary"));
    });

    it("copies a conversation into a session without usage", async () => {
      const { id: source, finish } = await working();
      finish();
      await idle(source);
      const parent = await newSession();
      const draft = { ...record({ agent: "build", parentSessionID: parent, isForked: true }), id: undefined };
      const copy = await server.copySession(source, {
        title: "Copy",
        parentID: parent,
        agent: "build",
        task: draft,
      });
      const found = await server.session(copy.id);
      assert.equal(found?.title, "Copy");
      assert.equal(found?.parentID, parent);
      assert.ok(found?.task.kind === "task");
      assert.deepEqual(found.task.record, { ...draft, id: copy.id });
      assert.equal(found.cost, 0);
      assert.equal(found.tokens.input, 0);
      assert.deepEqual(roles(await server.messages(copy.id)), ["user", "assistant"]);
      assert.equal((await server.messages(source)).length, 2);
    });

    it("writes a conversation, which the next turn continues, and replaces it", async () => {
      const { id: source, finish } = await working();
      finish();
      await idle(source);
      const history = await server.messages(source);
      const id = await newSession();
      assert.equal(await server.canWriteHistory(), true);
      await server.writeHistory(id, history);
      const written = await server.messages(id);
      assert.deepEqual(roles(written), ["user", "assistant"]);
      assert.deepEqual(textsOf(written), textsOf(history));
      const [first, second] = written;
      assert.ok(second?.info.role === "assistant");
      assert.equal(second.info.parentID, first?.info.id);
      assert.ok(!history.some(({ info }) => written.some((message) => message.info.id === info.id)));
      assert.equal((await server.session(id))?.tokens.input, 0);
      const gate = `contract-${++made}`;
      await server.prompt(id, { ...envelope(), parts: [{ text: subject.prompt(gate) }] });
      await until("the answer to be begun", async () => (await server.messages(id)).length === 4);
      subject.finish(id, gate);
      await idle(id);
      await server.writeHistory(id, []);
      assert.deepEqual(await server.messages(id), []);
    });

    it("reports no files for a session that changed none", async () => {
      const { id, finish } = await working();
      finish();
      await idle(id);
      assert.deepEqual(await server.changes(id, 0), { files: [], hasSnapshots: false });
    });

    it("deletes a session with its children", async () => {
      const { id, parentSessionID } = await newTask();
      await server.deleteSession(parentSessionID);
      assert.equal(await server.session(id), undefined);
      await server.deleteSession(parentSessionID);
    });

    it("reports what doesn't exist", async () => {
      const id = await newSession();
      assert.equal(await server.session("ses_none"), undefined);
      assert.equal(await server.message("ses_none", "msg_none"), undefined);
      assert.equal(await server.message(id, "msg_none"), undefined);
      await assert.rejects(server.messages("ses_none"), failing("not-found"));
      await assert.rejects(server.changes("ses_none", 0), failing("not-found"));
      await assert.rejects(
        server.prompt("ses_none", { ...envelope(), parts: [{ text: "x" }] }),
        failing("not-found"),
      );
      await server.abort("ses_none");
      const request = { type: "question", id: "que_none", sessionID: id, questions: [] } as const;
      await assert.rejects(server.answer(request, { type: "dismiss" }), failing("not-found"));
    });
  });
