import assert from "node:assert/strict";
import { LiveTranscripts } from "../../../src/engine/live-transcripts.ts";
import type { AgentServer, Logger } from "../../../src/engine/ports.ts";
import type { Message, TextPart, UserMessageInfo } from "../../../src/engine/server-model.ts";
import type { Transcript, TranscriptChange } from "../../../src/engine/transcript.ts";
import { settled } from "../../support/manual-clock.ts";

const SESSION = "ses_1";

function prompt(id: string): UserMessageInfo {
  return { role: "user", id, sessionID: SESSION, created: 1, agent: "general" };
}

describe("Conversations followed live", () => {
  /** The messages that the server would return now. */
  let stored: Message[];
  /** Pending answers, each with the messages at the time of the request. */
  let answers: (() => void)[];
  let read: () => Promise<readonly Message[]>;
  let transcripts: LiveTranscripts;
  let log: string[];

  beforeEach(() => {
    stored = [];
    answers = [];
    read = () => {
      const answer = [...stored];
      return new Promise((resolve) => answers.push(() => resolve(answer)));
    };
    const messages = (): Promise<readonly Message[]> => read();
    log = [];
    const warn = (message: string): void => void log.push(message);
    transcripts = new LiveTranscripts({ messages } as unknown as AgentServer, { warn } as unknown as Logger);
  });

  afterEach(() => transcripts.dispose());

  /** Completes the oldest pending read. */
  async function answer(): Promise<void> {
    await settled();
    (answers.shift() ?? assert.fail("nothing is being read"))();
    await settled();
  }

  function tell(info: UserMessageInfo): void {
    stored = [...stored, { info, parts: [] }];
    transcripts.accept({ type: "message-changed", info });
  }

  it("keep a message that arrived while they were reloaded twice", async () => {
    const opening = transcripts.open(SESSION);
    await answer();
    const transcript = await opening;
    const reloads = Promise.all([transcripts.reload(), transcripts.reload()]);
    await answer();
    tell(prompt("msg_1"));
    await answer();
    await reloads;
    assert.deepEqual(
      transcript.messages.map(({ info }) => info.id),
      ["msg_1"],
    );
  });

  it("are reloaded before a prompt that they don't have, and not for one that they have", async () => {
    const opening = transcripts.open(SESSION);
    await answer();
    await opening;
    const reading = transcripts.reloadBefore(prompt("msg_1"));
    tell(prompt("msg_1"));
    await answer();
    await reading;
    await transcripts.reloadBefore(prompt("msg_1"));
    assert.equal(answers.length, 0);
  });

  async function open(sessionID = SESSION): Promise<Transcript> {
    const opening = transcripts.open(sessionID);
    await answer();
    return opening;
  }

  const part = (changed: Partial<TextPart> = {}): TextPart => ({
    ...{ type: "text", id: "prt_1", sessionID: SESSION, messageID: "msg_1", text: "", synthetic: false },
    ...changed,
  });
  const change = (changed: Partial<TextPart> = {}): void =>
    transcripts.accept({ type: "part-changed", part: part(changed) });
  const stream = (delta: string, field = "text", id = "prt_1"): void =>
    transcripts.accept({
      ...{ type: "part-delta", sessionID: SESSION, messageID: "msg_1", partID: id },
      ...{ field, delta },
    });
  const textsOf = ({ messages }: Transcript): readonly string[] =>
    messages.flatMap(({ parts }) => parts.flatMap((each) => ("text" in each ? [each.text] : [])));

  /** A message whose parts the server has stored as they began. */
  function store(...parts: readonly TextPart[]): void {
    stored = [{ info: prompt("msg_1"), parts }];
  }

  it("tell what changes in them, and nothing of other sessions", async () => {
    const transcript = await open();
    const changes: TranscriptChange[] = [];
    transcript.onDidChange((each) => changes.push(each));
    tell(prompt("msg_1"));
    change({ start: 1 });
    stream("Hel");
    stream("lo");
    stream("ignored", "metadata");
    assert.deepEqual(textsOf(transcript), ["Hello"]);
    transcripts.accept({ type: "part-removed", sessionID: SESSION, messageID: "msg_1", partID: "prt_1" });
    assert.deepEqual(textsOf(transcript), []);
    transcripts.accept({ type: "message-removed", sessionID: SESSION, messageID: "msg_1" });
    assert.deepEqual(transcript.messages, []);
    assert.deepEqual(
      changes.map(({ type }) => type),
      ["message", "part", "text", "text", "part-removed", "message-removed"],
    );
    transcripts.accept({ type: "message-changed", info: { ...prompt("msg_2"), sessionID: "ses_2" } });
    transcripts.accept({ type: "session-status", sessionID: SESSION, status: { type: "idle" } });
    assert.equal(changes.length, 6);
    transcript.dispose();
    tell(prompt("msg_3"));
    assert.equal(changes.length, 6);
    await transcripts.reload();
    assert.equal(answers.length, 0);
  });

  it("that are opened in the middle of a stream have all of its text so far", async () => {
    store(part({ start: 1 }), part({ id: "prt_2", start: 1 }));
    change({ start: 1, text: "A" });
    change({ id: "prt_2", start: 1 });
    stream("B");
    stream("C", "metadata");
    stream("other", "text", "prt_2");
    const opening = transcripts.open(SESSION);
    await settled();
    stream("D");
    await answer();
    const transcript = await opening;
    assert.deepEqual(textsOf(transcript), ["ABD", "other"]);
    stream("E");
    assert.deepEqual(textsOf(transcript), ["ABDE", "other"]);
  });

  it("have the text of the server once the part has ended, or its session is idle", async () => {
    change({ start: 1 });
    change({ id: "prt_2", start: 1 });
    stream("partly");
    stream("too", "text", "prt_2");
    change({ start: 1, end: 2, text: "All of it." });
    store(part({ start: 1, end: 2, text: "All of it." }), part({ id: "prt_2", start: 1, text: "Stored." }));
    assert.deepEqual(textsOf(await open()), ["All of it.", "too"]);
    transcripts.accept({ type: "session-status", sessionID: SESSION, status: { type: "busy" } });
    assert.deepEqual(textsOf(await open()), ["All of it.", "too"]);
    transcripts.accept({ type: "session-status", sessionID: SESSION, status: { type: "idle" } });
    assert.deepEqual(textsOf(await open()), ["All of it.", "Stored."]);
  });

  it("keep streamed reasoning, and no text that was written at once", async () => {
    const reasoning = { ...part(), type: "reasoning", start: 1 } as const;
    transcripts.accept({ type: "part-changed", part: reasoning });
    change({ id: "prt_2", text: "Written." });
    stream("thinks");
    stream("!", "text", "prt_2");
    stored = [{ info: prompt("msg_1"), parts: [reasoning, part({ id: "prt_2", text: "Written." })] }];
    assert.deepEqual(textsOf(await open()), ["thinks", "Written."]);
  });

  it("have what arrived while they were read, each text once", async () => {
    const opening = transcripts.open(SESSION);
    await settled();
    tell(prompt("msg_1"));
    change({ start: 1 });
    stream("Once");
    await answer();
    const transcript = await opening;
    assert.deepEqual(textsOf(transcript), ["Once"]);
    stream(".");
    assert.deepEqual(textsOf(transcript), ["Once."]);
  });

  it("that can't be opened are not followed", async () => {
    let reads = 0;
    read = async () => {
      reads++;
      throw new Error("Gone.");
    };
    await assert.rejects(transcripts.open(SESSION), /Gone/);
    await transcripts.reload();
    assert.equal(reads, 1);
  });

  it("stay as they are, with what arrives, if they can't be read again, which is logged", async () => {
    const transcript = await open();
    tell(prompt("msg_1"));
    const resets: TranscriptChange[] = [];
    transcript.onDidChange((each) => resets.push(each));
    let fail: () => void = () => undefined;
    read = () => new Promise((_, reject) => (fail = () => reject(new Error("Gone."))));
    const reloading = transcripts.reload();
    await settled();
    tell(prompt("msg_2"));
    assert.equal(transcript.messages.length, 1);
    fail();
    await reloading;
    assert.deepEqual(
      transcript.messages.map(({ info }) => info.id),
      ["msg_1", "msg_2"],
    );
    assert.deepEqual(log, ["Couldn't read a conversation again: Gone."]);
    assert.deepEqual(
      resets.map(({ type }) => type),
      ["message"],
    );
  });

  it("that are read again in the middle of a stream keep its text, unless events were missed", async () => {
    const transcript = await open();
    store(part({ start: 1 }));
    tell(prompt("msg_1"));
    store(part({ start: 1 }));
    change({ start: 1 });
    stream("Half");
    const reload = async (): Promise<void> => {
      const reloading = transcripts.reload();
      await settled();
      stream(" of");
      await answer();
      await reloading;
    };
    await reload();
    stream(" it");
    assert.deepEqual(textsOf(transcript), ["Half of it"]);
    transcripts.disconnect();
    await reload();
    assert.deepEqual(textsOf(transcript), [""]);
  });

  it("tell that they were read again", async () => {
    const transcript = await open();
    const changes: TranscriptChange[] = [];
    transcript.onDidChange((each) => changes.push(each));
    stored = [{ info: prompt("msg_9"), parts: [] }];
    const reloading = transcripts.reload();
    await answer();
    await reloading;
    assert.deepEqual(changes, [{ type: "reset", messages: stored }]);
  });
});
