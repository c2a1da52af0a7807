import assert from "node:assert/strict";
import { ActiveSession } from "../../../src/engine/active-session.ts";
import { Emitter } from "../../../src/engine/event.ts";
import { NOTICE_MARK } from "../../../src/engine/asked.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import type { Message, Session, TextPart } from "../../../src/engine/server-model.ts";
import { hold } from "../../support/hold.ts";
import { MemoryServer } from "../../support/memory-server.ts";

describe("The active session", () => {
  let time: number;
  let server: MemoryServer;
  let sessions: Emitter<string>;
  let active: ActiveSession;
  let changes: (string | undefined)[];
  let log: string[];
  let made: number;

  beforeEach(() => {
    time = 1_000;
    server = new MemoryServer({ now: () => time++ });
    const fail = (error: unknown): never => {
      throw error;
    };
    sessions = new Emitter(fail);
    log = [];
    const note = (message: string): void => void log.push(message);
    const logger: Logger = { debug: note, info: note, warn: note, error: note };
    const source = {
      sessions: () => server.known(),
      session: (id: string) => server.known().find((session) => session.id === id),
      onDidChangeSession: sessions.event,
    };
    active = new ActiveSession(source, server, logger);
    changes = [];
    active.onDidChange((id) => changes.push(id));
    made = 0;
  });

  afterEach(() => active.dispose());

  async function create(changed: Partial<Session> = {}): Promise<string> {
    const session = await server.createSession({ title: "Work" });
    server.put({ ...session, ...changed }, undefined);
    sessions.fire(session.id);
    return session.id;
  }

  function change(id: string, changed: Partial<Session>): void {
    const session = server.known().find((each) => each.id === id);
    assert.ok(session);
    server.put({ ...session, ...changed }, undefined);
    sessions.fire(id);
  }

  function message(sessionID: string, created = time, part: Partial<TextPart> = {}): Message {
    const id = `msg_${++made}`;
    const model = { providerID: "memory", modelID: "m" };
    return {
      info: { role: "user", id, sessionID, created, agent: "build", model },
      parts: [
        {
          type: "text",
          id: `prt_${made}`,
          sessionID,
          messageID: id,
          text: "Go on.",
          synthetic: false,
          ...part,
        },
      ],
    };
  }

  /** The events of a message, as the server sends them. */
  function send({ info, parts }: Message): void {
    server.emit({ type: "message-changed", info });
    for (const part of parts) server.emit({ type: "part-changed", part });
  }

  const notice = { metadata: { [NOTICE_MARK]: "ses_1" } };

  it("is the one that was updated last, until a user writes in another one", async () => {
    assert.equal(active.id, undefined);
    const first = await create();
    const second = await create();
    assert.equal(active.id, first);
    await active.refresh();
    // Nobody has written yet, and the active session doesn't change without need.
    assert.equal(active.id, first);
    send(message(second));
    assert.equal(active.id, second);
    send(message(second));
    assert.deepEqual(changes, [first, second]);
  });

  for (const [what, part] of Object.entries<Partial<TextPart>>({
    "the text of a model": { start: 5 },
    "text that OpenCode adds": { synthetic: true },
    "a notice": notice,
  }))
    it(`isn't changed by ${what}`, async () => {
      const first = await create();
      const second = await create();
      send(message(second, time, part));
      assert.equal(active.id, first);
    });

  it("isn't changed by what is no text", async () => {
    const first = await create();
    const second = await create();
    const messageID = message(second).info.id;
    const file = { type: "file", url: "file:///work/a.ts", mime: "text/plain", filename: "a.ts" } as const;
    server.emit({ type: "part-changed", part: { ...file, id: "prt_f", sessionID: second, messageID } });
    assert.equal(active.id, first);
  });

  for (const [what, changed] of Object.entries<Partial<Session>>({
    "a child session": { parentID: "ses_other" },
    "an archived one": { archived: 5 },
  }))
    it(`is never ${what}`, async () => {
      const first = await create();
      const second = await create(changed);
      send(message(second));
      assert.equal(active.id, first);
    });

  it("isn't one to which a conversation was copied, until a user writes there", async () => {
    const first = await create();
    const copy = await create();
    const copied = message(copy, 1);
    send(copied);
    assert.equal(active.id, first);
    const { created } = (await server.session(copy)) ?? {};
    const own = message(copy, created);
    send(copied);
    send(own);
    assert.equal(active.id, copy);
  });

  it("takes a part for the user's whose message it hasn't heard of", async () => {
    await create();
    const second = await create();
    send(message(second, 1));
    const { parts } = message(second, 1);
    for (const part of parts) server.emit({ type: "part-changed", part });
    assert.equal(active.id, second);
  });

  it("gives way to the one that was updated last, once it is archived or gone, and comes back", async () => {
    const older = await create({ updated: 5_000 });
    const newer = await create({ updated: 6_000 });
    const written = await create({ updated: 4_000 });
    send(message(written));
    assert.equal(active.id, written);
    change(written, { archived: 1 });
    assert.equal(active.id, newer);
    change(written, { archived: undefined });
    assert.equal(active.id, written);
    change(written, { archived: 1 });
    await server.deleteSession(newer);
    sessions.fire(newer);
    assert.equal(active.id, older);
  });

  it("stays when another session is updated or added", async () => {
    const first = await create();
    await create();
    const child = await create({ parentID: first });
    change(child, { updated: 9_000_000 });
    change(first, { updated: 1 });
    assert.equal(active.id, first);
    assert.deepEqual(changes, [first]);
  });

  it("is created once if there is none, for all who need it", async () => {
    const made = await Promise.all([active.ensure(), active.ensure()]);
    const [session, ...others] = server.known();
    assert.ok(session && others.length === 0);
    assert.equal(session.title, "Background tasks");
    assert.deepEqual(made, [session.id, session.id]);
    assert.equal(active.id, session.id);
    assert.deepEqual(changes, [session.id]);
    assert.equal(await active.ensure(), session.id);
    assert.equal(server.known().length, 1);
  });

  it("is created at the next attempt if that failed", async () => {
    const { createSession } = server;
    server.createSession = async () => Promise.reject(new Error("Refused."));
    await assert.rejects(active.ensure(), /Refused/);
    server.createSession = createSession;
    assert.equal(await active.ensure(), server.known()[0]?.id);
  });

  it("is, after a connect, the one in which a user wrote last, whatever was sent there since", async () => {
    const written = await create({ updated: 1 });
    const told = await create({ updated: 3 });
    await create({ updated: 2 });
    await server.writeHistory(written, [
      message(written, 10),
      message(written, 30),
      message(written, 90, notice),
    ]);
    await server.writeHistory(told, [message(told, 20), message(told, 99, notice)]);
    await active.refresh();
    assert.equal(active.id, written);
    assert.deepEqual(log, []);
  });

  it("is the one in which a user writes while the others are read after a connect", async () => {
    const first = await create({ updated: 3 });
    const second = await create({ updated: 2 });
    await server.writeHistory(first, [message(first, 20)]);
    const release = hold(server, "messages", second);
    const refreshing = active.refresh();
    send(message(second));
    assert.equal(active.id, second);
    release();
    await refreshing;
    assert.equal(active.id, second);
    assert.deepEqual(changes.slice(-1), [second]);
  });

  it("is found where an agent has worked for long, and messages that OpenCode wrote itself don't count", async () => {
    const working = await create({ updated: 3 });
    const told = await create({ updated: 2 });
    const history = (session: string, at: number, count: number): Message[] => [
      message(session, at),
      ...Array.from({ length: count }, (_, index) => message(session, at + 1 + index, notice)),
    ];
    await server.writeHistory(working, history(working, 30, 20));
    await server.writeHistory(told, history(told, 10, 19));
    await active.refresh();
    assert.equal(active.id, working);
    const carryOn = { ...message(told, 90), parts: message(told, 90, { synthetic: true }).parts };
    await server.writeHistory(told, [...history(told, 10, 1), carryOn]);
    await active.refresh();
    assert.equal(active.id, working);
    const { messages } = server;
    const whole: string[] = [];
    server.messages = async (id, limit) => {
      if (limit === undefined) whole.push(id);
      return messages.call(server, id, limit);
    };
    await server.writeHistory(told, [message(told, 95)]);
    await active.refresh();
    assert.equal(active.id, told);
    assert.deepEqual(whole, [], "older messages can't be newer");
  });

  it("is found though a session can't be read, which is logged", async () => {
    const broken = await create();
    const written = await create();
    await server.writeHistory(broken, [message(broken, 50)]);
    await server.writeHistory(written, [message(written, 10)]);
    const { messages } = server;
    server.messages = async (id, limit) => {
      if (id === broken) throw new Error("Damaged.");
      return messages.call(server, id, limit);
    };
    await active.refresh();
    assert.equal(active.id, written);
    assert.deepEqual(log, [`Couldn't read session ${broken}: Damaged.`]);
  });

  it("is looked for in the newest messages of the eight sessions that were updated last", async () => {
    const ids: string[] = [];
    for (let index = 0; index < 9; index++) ids.push(await create({ updated: index }));
    const read: string[] = [];
    server.messages = async (id, limit) => {
      assert.equal(limit, 20);
      read.push(id);
      return [];
    };
    await active.refresh();
    assert.deepEqual(read, ids.slice(1).toReversed());
  });

  it("follows nothing once it is disposed", async () => {
    const first = await create();
    const second = await create();
    active.dispose();
    send(message(second));
    change(first, { archived: 1 });
    assert.equal(active.id, first);
    assert.deepEqual(changes, [first]);
  });
});
