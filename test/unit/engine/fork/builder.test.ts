import assert from "node:assert/strict";
import { ForkBuilder, type ForkRequest } from "../../../../src/engine/fork/builder.ts";
import { TRANSCRIPT_LEGEND } from "../../../../src/engine/fork/transcript-text.ts";
import { ServerFailure } from "../../../../src/engine/ports.ts";
import type { Message, Session } from "../../../../src/engine/server-model.ts";
import type { ForkSettings } from "../../../../src/engine/settings.ts";
import { goneSession } from "../../../../src/engine/task-memory.ts";
import { ManualClock, settled } from "../../../support/manual-clock.ts";
import { MemoryServer } from "../../../support/memory-server.ts";
import { roughTokens } from "../../../support/rough-tokens.ts";
import { NO_TOKENS, record } from "../builders.ts";
import { agent, call, file, ids, inOrder, user, words } from "./conversation.ts";

const SOURCE = "ses_source";
const REFUSED = new ServerFailure("POST /sync/replay", "refused", "Not today.", 400);
const GONE = new ServerFailure("GET", "unreachable", "Gone.");

describe("The builder of a fork", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let settings: ForkSettings;
  let builder: ForkBuilder;
  let task: Session;
  const request: ForkRequest = { sourceSessionID: SOURCE };

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    settings = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" };
    server.put(
      { ...goneSession(record({ id: SOURCE, description: "Fix the build" })), task: none },
      undefined,
    );
    await talk(user("u1", "First?"), agent("a1", { parentID: "u1" }, "One."), user("u2", "Next?"));
    const sessions = { session: (id: string) => server.known().find((session) => session.id === id) };
    const ports = {
      server,
      tokens: roughTokens,
      clock,
      random: () => 0.5,
      settings: () => ({ fork: settings }),
    };
    builder = new ForkBuilder(ports, sessions);
    task = await server.createSession({ title: "Fork", agent: "general" });
  });

  const none = { kind: "none" } as const;

  /** What the source's conversation is from now on. */
  async function talk(...messages: readonly Message[]): Promise<void> {
    await server.writeHistory(SOURCE, []);
    for (const { info, parts } of inOrder(...messages)) {
      server.apply({ type: "message-changed", info });
      for (const part of parts) server.apply({ type: "part-changed", part });
    }
  }

  async function undo(messageID: string): Promise<void> {
    const session = await server.session(SOURCE);
    assert.ok(session);
    server.put({ ...session, undoneFrom: { messageID } }, undefined);
  }

  const withoutReplay = (): void => void (server.canWriteHistory = async () => false);
  const reads = (): number => server.journal.filter(({ call }) => call === "messages").length;
  const written = (): readonly Message[] => server.stored(task.id);
  const write = async (asked: Partial<ForkRequest> = {}, facts = {}): Promise<void> =>
    builder.write(record({ id: task.id, ...facts }), await builder.prepare({ ...request, ...asked }));

  describe("when it is asked for one", () => {
    const open = (asked: Partial<ForkRequest> = {}, isInPlace = true) =>
      builder.open({ ...request, ...asked }, undefined, isInPlace);

    it("reads nothing where the server won't have to copy", async () => {
      const before = reads();
      assert.deepEqual(await open(), { copies: false, prepared: undefined });
      withoutReplay();
      assert.deepEqual(await open({}, false), { copies: false, prepared: undefined });
      settings = { ...settings, strategy: "replay" };
      assert.deepEqual(await open(), { copies: false, prepared: undefined });
      assert.equal(reads(), before);
    });

    it("prepares the conversation where the server may have to copy it", async () => {
      settings = { ...settings, strategy: "fork" };
      const { copies, prepared } = await open();
      assert.ok(copies);
      assert.equal(prepared?.plan.kind, "copy");
      settings = { ...settings, strategy: "auto" };
      withoutReplay();
      assert.ok((await open()).copies);
      const part = await open({ upToMessageID: "a1" });
      assert.ok(!part.copies);
      assert.equal(part.prepared?.plan.kind, "text");
    });

    it("refuses limits that are none, an unknown conversation and unknown messages", async () => {
      await assert.rejects(open({ maxTokens: 0 }), { code: "invalid-argument" });
      await assert.rejects(open({ maxToolResultChars: -1 }), { code: "invalid-argument" });
      await assert.rejects(open({ sourceSessionID: "ses_none" }), {
        code: "unknown-session",
        message: "The conversation to fork doesn't exist in this folder. Select another one.",
      });
      await assert.rejects(open({ upToMessageID: "msg_none" }), { message: /msg_none/ });
      await assert.rejects(open({ fromMessageID: "msg_none" }), { message: /msg_none/ });
      await assert.rejects(open({ fromMessageID: "u2", upToMessageID: "a1" }), { message: /u2/ });
      await open({ fromMessageID: "u1", upToMessageID: "a1" });
      await open({ fromMessageID: "a1", upToMessageID: "a1" });
    });

    it("refuses a range that ends with what the user has undone, which alone takes reading it all", async () => {
      const before = reads();
      await open({ upToMessageID: "u2" });
      assert.equal(reads(), before);
      await undo("u2");
      await open();
      assert.equal(reads(), before);
      await assert.rejects(open({ fromMessageID: "u2" }), { message: /u2/ });
      await open({ upToMessageID: "a1" });
    });
  });

  describe("prepares what is inherited", () => {
    it("within the limits of the request, or else of the settings", async () => {
      const output = "r".repeat(2_000);
      await talk(user("u1", "Go."), agent("a1", {}, "One.", call("c1", { output })));
      const shortened = async (asked: Partial<ForkRequest> = {}) =>
        (await builder.prepare({ ...request, ...asked })).cut.limits;
      assert.deepEqual(await shortened(), { maxToolResultChars: 1_500, maxTokens: 100_000 });
      assert.deepEqual(await shortened({ maxToolResultChars: 10, maxTokens: 5_000 }), {
        maxToolResultChars: 10,
        maxTokens: 5_000,
      });
    });

    it("without what was undone, and as a replay where the server can write one", async () => {
      await undo("u2");
      const { cut, plan, preamble } = await builder.prepare(request);
      assert.deepEqual(ids(cut.messages), ["u1", "a1"]);
      assert.equal(plan.kind, "replay");
      assert.match(preamble, /"Fix the build"/);
    });

    it("not as a copy if that would be compacted at once", async () => {
      withoutReplay();
      const last = (tokens: number, facts = {}) =>
        talk(
          user("u1", "Go."),
          agent(
            "a1",
            { tokens: { ...NO_TOKENS, input: 10, output: 20, cacheRead: 30, cacheWrite: tokens }, ...facts },
            "One.",
          ),
        );
      const kind = async (): Promise<string> => (await builder.prepare(request)).plan.kind;
      await last(99_940);
      assert.equal(await kind(), "copy");
      await last(99_941);
      assert.equal(await kind(), "text");
      settings = { ...settings, strategy: "fork" };
      assert.equal(await kind(), "copy");
      settings = { ...settings, strategy: "auto" };
      await talk(user("u1", "Go."));
      assert.equal(await kind(), "copy");
    });

    it("or says that the conversation is gone, and nothing else of a server that can't be reached", async () => {
      const { messages } = server;
      server.messages = async () => Promise.reject(new ServerFailure("GET", "not-found", "No.", 404));
      await assert.rejects(builder.prepare(request), { code: "unknown-session" });
      server.messages = async () => Promise.reject(GONE);
      await assert.rejects(builder.prepare(request), GONE);
      server.messages = messages;
      await assert.rejects(builder.prepare({ ...request, maxTokens: 0 }), { code: "invalid-argument" });
    });

    it("and shows it beforehand", async () => {
      const { kind, messagesAfter, text } = await builder.preview(request);
      assert.deepEqual([kind, messagesAfter], ["replay", 3]);
      assert.match(text, /"Fix the build"[^]*Next\?/);
    });
  });

  it("offers the prompts with text, without those that were undone, to start from", async () => {
    await talk(
      user("u1", "First?"),
      user("u2"),
      agent("a1", {}, "One."),
      user("u3", "More?"),
      user("u4", "Undone"),
    );
    await undo("u4");
    assert.deepEqual(await builder.starts(SOURCE), [
      { messageID: "u1", text: "First?", created: 1_000 },
      { messageID: "u3", text: "More?", created: 4_000 },
    ]);
  });

  describe("writes the conversation", () => {
    it("as messages", async () => {
      await write();
      assert.deepEqual(written().map(words), ["First?", "One.", "Next?"]);
    });

    it("not at all if there is none", async () => {
      await talk();
      const { length } = server.journal;
      await write();
      assert.deepEqual(written(), []);
      assert.ok(
        !server.journal.slice(length).some(({ call }) => call === "writeHistory" || call === "prompt"),
      );
    });

    it("with the older messages as one text before the others, with their model or the task's", async () => {
      const turns = Array.from({ length: 100 }, (_, n) => [
        user(`u${n}`, `Question ${n}`),
        agent(`a${n}`, { model: { providerID: "fake", modelID: n < 99 ? "old" : "new" } }, `Answer ${n}`),
      ]).flat();
      await talk(...turns);
      await write();
      const [first, second] = written();
      assert.ok(first && second);
      assert.ok(words(first).startsWith(`${TRANSCRIPT_LEGEND}\n\n`));
      assert.ok(words(first).includes("Question 0") && !words(first).includes("Answer 99"));
      assert.equal(first.info.created, second.info.created - 1);
      assert.ok(first.parts.every((part) => part.type === "text" && part.synthetic));
      assert.equal(first.info.model?.modelID, "new");
      assert.equal(first.info.agent, "general");
      await write({}, { model: { providerID: "fake", modelID: "own" }, agent: "build" });
      assert.deepEqual([written()[0]?.info.model?.modelID, written()[0]?.info.agent], ["own", "build"]);
    });

    it("with the files of the older messages, which their text can only name", async () => {
      const image = { mime: "image/png", url: "data:image/png;base64,AAAA" };
      const read = { ...image, filename: "read.png" };
      const turns = Array.from({ length: 100 }, (_, n) => [
        user(`u${n}`, `Question ${n}`),
        agent(`a${n}`, {}, `Answer ${n}`),
      ]).flat();
      const shown = user("shown", "Build this.", file(image.mime, image.url, "shot.png"));
      const looked = agent("looked", {}, call("c", { output: "An image.", attachments: [read] }));
      await talk(shown, looked, ...turns);
      const names = (): readonly (string | undefined)[] =>
        (written()[0]?.parts ?? []).flatMap((part) => (part.type === "file" ? part.filename : []));
      await write();
      assert.deepEqual(names(), ["shot.png", "read.png"]);
    });

    it("as one hidden text if the server can't write messages, or refuses these, without asking a model", async () => {
      withoutReplay();
      settings = { ...settings, maxTokens: 5_000 };
      await write({ upToMessageID: "a1" });
      const [only, ...others] = written();
      assert.ok(only && others.length === 0);
      assert.equal(words(only).indexOf(`${TRANSCRIPT_LEGEND}\n\nUser: First?`), 0);
      assert.ok(only.parts.every((part) => part.type === "text" && part.synthetic));
      assert.equal(server.running().size, 0);
    });

    for (const reason of ["refused", "unexpected-answer"] as const)
      it(`as text after what a server left that wrote a part of it: ${reason}`, async () => {
        const { writeHistory } = server;
        server.writeHistory = async (sessionID, messages) => {
          await writeHistory.call(server, sessionID, messages.slice(0, 1));
          if (messages.length > 0) throw new ServerFailure("POST", reason, "No.", 400);
        };
        await write();
        assert.equal(written().length, 1);
        assert.match(written().map(words).join(), /First\?[^]*Next\?/);
      });

    it("not as text if the server can't be reached", async () => {
      server.writeHistory = async () => Promise.reject(GONE);
      await assert.rejects(write(), GONE);
      assert.deepEqual(written(), []);
    });

    it("and waits until a text is stored, at most 15 seconds", async () => {
      withoutReplay();
      const { message } = server;
      let isStored = false;
      server.message = async (sessionID, id) => (isStored ? message.call(server, sessionID, id) : undefined);
      let outcome = "waits";
      const note = (what: string) => (): void => void (outcome = what);
      const writing = (): Promise<void> =>
        write({ upToMessageID: "a1" }).then(note("written"), (error: Error) => note(error.message)());
      void writing();
      await settled();
      await clock.advance(14_000);
      assert.equal(outcome, "waits");
      isStored = true;
      await clock.advance(100);
      assert.equal(outcome, "written");
      isStored = false;
      outcome = "waits";
      void writing();
      await settled();
      await clock.advance(14_800);
      assert.equal(outcome, "waits");
      await clock.advance(200);
      assert.equal(outcome, "The server accepted the conversation but didn't store it.");
      assert.equal(clock.pending, 0);
    });

    it("unless the text it is replaced by is refused", async () => {
      server.writeHistory = async () => Promise.reject(REFUSED);
      await assert.rejects(write(), REFUSED);
    });
  });
});
