import assert from "node:assert/strict";
import type { Refusal } from "../../../../src/engine/errors.ts";
import { MAX_FILE_URL } from "../../../../src/engine/fork/file-text.ts";
import { IN_PROGRESS, inheritedHistory, LAUNCH_TOOL } from "../../../../src/engine/fork/inherited-history.ts";
import { NOTICE_MARK } from "../../../../src/engine/asked.ts";
import { ABORTED, type Message, type Undone } from "../../../../src/engine/server-model.ts";
import { recordedTurns } from "../../../support/recordings.ts";
import { agent, call, file, ids, inOrder, mark, reasoning, text, user, words } from "./conversation.ts";

const refused = { name: "Refusal", code: "invalid-argument" } satisfies Partial<Refusal>;

describe("what a fork inherits", () => {
  it("is empty for an empty conversation", () => {
    const history = inheritedHistory([]);
    assert.deepEqual(history, {
      messages: [],
      openCalls: 0,
      hasLaunch: false,
      leftOutFiles: 0,
      isWhole: true,
      sourceEvents: 0,
    });
  });

  it("is what the model sees: no marks, no ignored or empty texts, no reasoning", () => {
    const { messages, isWhole, sourceEvents } = inheritedHistory(
      inOrder(
        user("u1", "Do it.", text("only for people", { ignored: true }), mark("agent")),
        agent("a1", {}, mark("step-start"), reasoning("hm"), "", "Done.", mark("patch"), mark("snapshot")),
        user("u2", text("a status line", { ignored: true })),
        agent("a2", {}, mark("step-start"), reasoning("hm")),
      ),
    );
    assert.deepEqual(messages.map(words), ["Do it.", "Done."]);
    assert.ok(!isWhole, "the server's own copy would hold the reasoning");
    assert.equal(sourceEvents, 4 + 12);
  });

  it("is complete if the server's own copy shows a model the same", () => {
    const marks = agent("a1", {}, mark("step-start"), reasoning(""), "Done.", mark("step-finish"));
    assert.ok(inheritedHistory(inOrder(user("u1", "Do it."), marks)).isWhole);
  });

  it("keeps the notices of background tasks", () => {
    const notice = text("Task x completed.", { synthetic: true, metadata: { [NOTICE_MARK]: "ses_x" } });
    assert.deepEqual(inheritedHistory([user("u1", notice)]).messages.map(words), ["Task x completed."]);
  });

  it("keeps what an aborted turn did, and leaves out an answer that ended in an error", () => {
    const aborted = { name: ABORTED, message: "Aborted" };
    const failed = { name: "APIError", message: "Overloaded" };
    const { messages } = inheritedHistory([
      user("u1", "Go."),
      agent("a1", { error: aborted }, "I was", call("c1", { error: "Tool execution aborted" })),
      user("u2", "Again."),
      agent("a2", { error: failed }, "half a sen"),
      agent("a3", {}, "Done."),
    ]);
    assert.deepEqual(ids(messages), ["u1", "a1", "u2", "a3"]);
  });

  it("keeps what a command had returned before it was aborted, in place of the error", () => {
    const aborted = call("c1", { error: "Tool execution aborted", partialOutput: "3 tests failed" });
    const [message] = inheritedHistory([user("u1", "Go."), agent("a1", {}, aborted)]).messages.slice(1);
    assert.deepEqual(message?.parts[0]?.type === "tool" && message.parts[0].state, {
      status: "completed",
      input: { path: "c1.ts" },
      output: "3 tests failed",
      title: "",
      start: 1,
      end: 2,
    });
  });

  it("says of a result that OpenCode cleared what its models are told, and has no files of it", () => {
    const attachments = [{ mime: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" }];
    const cleared = call("c1", { output: "old ".repeat(9), attachments, isCleared: true });
    const [message] = inheritedHistory([agent("a1", {}, cleared)]).messages;
    const state = message?.parts[0]?.type === "tool" && message.parts[0].state;
    assert.ok(state && state.status === "completed");
    assert.equal(state.output, "[Old tool result content cleared]");
    assert.equal(state.attachments, undefined);
  });

  it("marks a call in flight as in progress, and keeps the rest of its message", () => {
    const source = [
      user("u1", "Go."),
      agent(
        "a1",
        { completed: undefined },
        "I look",
        call("c1"),
        call("c2", { status: "running" }),
        call("c3", { status: "pending", input: {} }),
      ),
    ];
    const { messages, openCalls, isWhole } = inheritedHistory(source);
    assert.equal(openCalls, 2);
    assert.ok(!isWhole);
    const closed = { status: "error", error: IN_PROGRESS };
    const states = messages[1]?.parts.map((part) => part.type === "tool" && part.state);
    assert.deepEqual(states?.slice(2), [
      { ...closed, input: { path: "c2.ts" }, start: 7, end: 7 },
      { ...closed, input: {}, start: 0, end: 0 },
    ]);
    assert.deepEqual(messages[1]?.parts.slice(0, 2), source[1]?.parts.slice(0, 2));
  });

  it("says of a call that was cut off before the last answer what models are told, and not that it is in progress", () => {
    const source = [
      user("u1", "Go."),
      agent("a1", { completed: undefined }, call("c1", { status: "running" })),
      user("u2", "Go on."),
      agent("a2", {}, "Done."),
    ];
    const { messages, openCalls } = inheritedHistory(source, { upToMessageID: "a1" });
    const [part] = messages[1]?.parts ?? [];
    assert.ok(part?.type === "tool" && part.state.status === "error");
    assert.equal(part.state.error, "[Tool execution was interrupted]");
    assert.equal(openCalls, 0);
    assert.equal(inheritedHistory(source).openCalls, 0);
  });

  it("leaves the fork's own prompt out of its calls, and marks those as in progress", () => {
    const launch = (id: string, input: Readonly<Record<string, unknown>>, facts = {}) =>
      call(id, { input, ...facts }, LAUNCH_TOOL);
    const launching = launch("c1", { prompt: "Fork me.", fork: true }, { status: "running" });
    const others = [
      launch("c2", { prompt: "Another one." }),
      launch("c3", { filePath: "Fork me." }),
      launch("c4", { prompt: "Fork me." }),
    ];
    const source = [user("u1", "Fork me."), agent("a1", {}, launching, ...others)];
    const { messages, isWhole } = inheritedHistory(source, {}, "Fork me.");
    assert.deepEqual(messages.map(words)[0], "Fork me.");
    const inputs = messages[1]?.parts.map((part) => part.type === "tool" && part.state.input);
    assert.deepEqual(inputs, [{ fork: true }, { prompt: "Another one." }, { filePath: "Fork me." }, {}]);
    // Even though the call returned before the conversation was read.
    const own = messages[1]?.parts.at(-1);
    assert.equal(own?.type === "tool" && own.state.status === "error" && own.state.error, IN_PROGRESS);
    assert.ok(!isWhole);
    const ended = [user("u1", "Go."), agent("a1", {}, launch("c4", { prompt: "Fork me." }))];
    assert.ok(!inheritedHistory(ended, {}, "Fork me.").isWhole);
    assert.ok(inheritedHistory(ended, {}, "Fork it.").isWhole);
  });

  it("keeps other calls with the same prompt: those of other tools, and of earlier messages", () => {
    const input = { prompt: "Fork me." };
    const source = [
      user("u1", "Go."),
      agent("a1", {}, call("c1", { input }, LAUNCH_TOOL)),
      agent("a2", {}, call("c2", { input }, "task"), call("c3", { input }, LAUNCH_TOOL)),
      agent("a3", {}, call("c4", { input }, LAUNCH_TOOL)),
    ];
    const { messages } = inheritedHistory(source, { upToMessageID: "a2" }, "Fork me.");
    const inputs = messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool" ? [part.state.input] : [])),
    );
    assert.deepEqual(inputs, [input, input, {}]);
  });

  it("is not complete if the last message is still being written", () => {
    const { isWhole } = inheritedHistory([user("u1", "Go."), agent("a1", { completed: undefined }, "I")]);
    assert.ok(!isWhole);
  });

  it("ends with the requested message", () => {
    const source = [user("u1", "1"), agent("a1", {}, "2"), user("u2", "3")];
    assert.deepEqual(ids(inheritedHistory(source, { upToMessageID: "a1" }).messages), ["u1", "a1"]);
    assert.ok(!inheritedHistory(source, { upToMessageID: "a1" }).isWhole);
    assert.ok(inheritedHistory(source, { upToMessageID: "u2" }).isWhole);
  });

  it("ends before what the user undid, be it a message or the rest of one", () => {
    const source = [user("u1", "1"), agent("a1", {}, "2", call("c1"), "3"), user("u2", "4")];
    const partID = source[1]?.parts[1]?.id;
    const words = (undoneFrom: Undone): unknown => inheritedHistory(source, { undoneFrom }).messages;
    assert.deepEqual(words({ messageID: "u2" }), source.slice(0, 2));
    const [prompt, answer] = source as [Message, Message];
    assert.deepEqual(words({ messageID: "a1", partID }), [
      prompt,
      { ...answer, parts: answer.parts.slice(0, 1) },
    ]);
    // It was removed in the meantime.
    assert.deepEqual(words({ messageID: "u9" }), source);
    assert.ok(!inheritedHistory(source, { undoneFrom: { messageID: "u2" } }).isWhole);
    assert.throws(
      () => inheritedHistory(source, { fromMessageID: "u2", undoneFrom: { messageID: "u2" } }),
      refused,
    );
  });

  it("begins with the chosen message, or the prompt of the chosen answer", () => {
    const source = [
      user("u1", "1"),
      agent("a1", {}, "2"),
      user("u2", "3"),
      agent("a2", {}, "4"),
      agent("a3", {}, "5"),
    ];
    assert.deepEqual(ids(inheritedHistory(source, { fromMessageID: "a3" }).messages), ["u2", "a2", "a3"]);
    assert.deepEqual(ids(inheritedHistory(source, { fromMessageID: "u2", upToMessageID: "a2" }).messages), [
      "u2",
      "a2",
    ]);
    assert.ok(!inheritedHistory(source, { fromMessageID: "u1" }).isWhole);
  });

  it("refuses a range that doesn't exist", () => {
    const source = [user("u1", "1"), agent("a1", {}, "2")];
    assert.throws(() => inheritedHistory(source, { upToMessageID: "u9" }), refused);
    assert.throws(() => inheritedHistory(source, { fromMessageID: "u9" }), refused);
    assert.throws(() => inheritedHistory(source, { fromMessageID: "a1", upToMessageID: "u1" }), refused);
  });
});

describe("what a fork inherits of files", () => {
  const image = "data:image/png;base64,iVBORw0KGgo=";
  const large = `data:image/png;base64,${"A".repeat(MAX_FILE_URL)}`;

  it("is small images unchanged", () => {
    const { messages, isWhole } = inheritedHistory([user("u1", "Look.", file("image/png", image, "a.png"))]);
    assert.equal(messages[0]?.parts[1]?.type, "file");
    assert.ok(isWhole);
  });

  it("is name, type and size of large ones", () => {
    const { messages, leftOutFiles, isWhole } = inheritedHistory([
      user("u1", "Look.", file("image/png", large, "shot\n1.png"), file("application/pdf", large)),
    ]);
    assert.deepEqual(messages.map(words), [
      "Look.\n[File: shot 1.png, image/png, 786 kB] was too large to be inherited." +
        "\n[File: unnamed, application/pdf, 786 kB] was too large to be inherited.",
    ]);
    assert.equal(leftOutFiles, 2);
    assert.ok(!isWhole);
  });

  it("is nothing of files whose content is included as text", () => {
    const { messages } = inheritedHistory([
      user(
        "u1",
        file("text/plain", "file:///a.ts", "a.ts"),
        text("content of a.ts", { synthetic: true }),
        file("application/x-directory", "file:///src", "src"),
      ),
    ]);
    assert.deepEqual(messages.map(words), ["content of a.ts"]);
  });

  it("is the same for files that a tool returned", () => {
    const [small, huge] = [
      { mime: "image/png", url: image, filename: "a.png" },
      { mime: "image/png", url: large, filename: "b.png" },
    ];
    const { messages, leftOutFiles, isWhole } = inheritedHistory([
      agent("a1", {}, call("c1", { output: "Read.", attachments: [small, huge] })),
    ]);
    const [part] = messages[0]?.parts ?? [];
    assert.ok(part?.type === "tool" && part.state.status === "completed");
    assert.deepEqual(part.state.attachments, [small]);
    assert.equal(part.state.output, "[File: b.png, image/png, 786 kB] was too large to be inherited.\nRead.");
    assert.equal(leftOutFiles, 1);
    assert.ok(!isWhole);
  });

  it("is all of many small images", () => {
    const files = Array.from({ length: 200 }, (_, n) => file("image/png", image, `${n}.png`));
    assert.equal(inheritedHistory([user("u1", ...files)]).messages[0]?.parts.length, 200);
  });
});

describe("what a fork inherits of a compacted conversation", () => {
  const summary = (id: string, parentID: string, facts = {}): Message =>
    agent(id, { parentID, summary: true, ...facts }, `Summary ${id}`);

  it("is the last summary and what came after it", () => {
    const { messages, isWhole, sourceEvents } = inheritedHistory(
      inOrder(
        user("u1", "old"),
        user("k1", mark("compaction")),
        summary("s1", "k1"),
        agent("a1", {}, "older"),
        user("k2", mark("compaction")),
        summary("s2", "k2"),
        user("u2", text("Continue.", { synthetic: true })),
        agent("a2", {}, "new"),
      ),
    );
    assert.deepEqual(messages.map(words), ["What did we do so far?", "Summary s2", "Continue.", "new"]);
    assert.ok(isWhole);
    assert.equal(sourceEvents, 16);
  });

  it("is everything if the summary failed or is unfinished", () => {
    for (const facts of [
      { finish: undefined, completed: undefined },
      { finish: "end", error: { name: "ContextOverflowError", message: "Too large" } },
    ]) {
      const source = [user("u1", "old"), user("k1", mark("compaction")), summary("s1", "k1", facts)];
      assert.equal(inheritedHistory(source).messages[0]?.info.id, "u1");
    }
  });

  it("has the messages that were kept with the summary after it, with later dates", () => {
    const { messages } = inheritedHistory(
      inOrder(
        user("u1", "old"),
        agent("a1", {}, "older"),
        user("u2", "kept"),
        agent("a2", {}, "kept too"),
        user("k1", mark("compaction", { tailStartID: "u2" })),
        user("u3", "sent meanwhile"),
        summary("s1", "k1"),
        agent("a3", {}, "new"),
      ),
    );
    assert.deepEqual(ids(messages), ["k1", "s1", "u2", "a2", "u3", "a3"]);
    const times = messages.map(({ info }) => info.created);
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => a - b),
    );
  });

  it("is the last one before the requested end", () => {
    const source = [
      user("u1", "old"),
      user("k1", mark("compaction")),
      summary("s1", "k1"),
      user("u2", "new"),
      user("k2", mark("compaction")),
      summary("s2", "k2"),
    ];
    assert.deepEqual(ids(inheritedHistory(source, { upToMessageID: "u2" }).messages), ["k1", "s1", "u2"]);
    assert.deepEqual(ids(inheritedHistory(source, { fromMessageID: "u1" }).messages), ids(source));
  });

  it("is everything after a failed compaction on the real server", () => {
    const [turn] = recordedTurns("errors").filter(({ events }) =>
      events.some((event) => event.type === "part-changed" && isCompaction(event.part)),
    );
    assert.ok(turn);
    const messages = new Map<string, Message>();
    for (const event of turn.events) {
      if (event.type === "message-changed")
        messages.set(event.info.id, { info: event.info, parts: messages.get(event.info.id)?.parts ?? [] });
      if (event.type !== "part-changed") continue;
      const message = messages.get(event.part.messageID);
      if (message) messages.set(message.info.id, { ...message, parts: [...message.parts, event.part] });
    }
    const inherited = inheritedHistory([...messages.values()]);
    assert.match(inherited.messages.map(words).join("\n"), /overflow/);
    assert.equal(inherited.messages.at(-1)?.info.role, "user");
  });
});

function isCompaction(part: Message["parts"][number]): boolean {
  return part.type === "other" && part.kind === "compaction";
}
