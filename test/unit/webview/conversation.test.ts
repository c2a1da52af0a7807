import assert from "node:assert/strict";

import type { ConversationEntry, TextEntry, ToolEntry } from "../../../src/protocol/output.ts";
import { Conversation, type Row } from "../../../src/webview/conversation.ts";

const text = (id: string, content = id, messageID = "m1"): TextEntry => ({
  kind: "text",
  id,
  messageID,
  text: content,
});
const tool = (id: string, status: ToolEntry["status"] = "running"): ToolEntry => ({
  kind: "tool",
  id,
  messageID: "m1",
  tool: "bash",
  hasSession: false,
  status,
});
const LONG = `${"word ".repeat(300).trim()}\n\n`;

describe("Conversation", () => {
  let mirror: Row[];
  let changed: Row[];
  let conversation: Conversation;

  beforeEach(() => {
    mirror = [];
    changed = [];
    conversation = new Conversation({
      onSplice: (index, removed, inserted) => {
        assert.deepEqual(mirror.splice(index, removed.length, ...inserted), removed);
      },
      onChange: (row) => changed.push(row),
    });
  });

  /** The shown rows, after asserting that the observer received the same. */
  function shown(): string[] {
    assert.deepEqual(mirror, conversation.rows);
    return conversation.rows.map((row) => row.text || row.item.entry.id);
  }

  function load(...entries: ConversationEntry[]): void {
    conversation.reset(entries, false);
  }

  it("lays out a snapshot, with long texts in several rows, and replaces it with the next", () => {
    load(text("a"), text("b", LONG + "end\n"), tool("c"));
    assert.deepEqual(shown(), ["a", LONG, "end\n", "c"]);
    load(text("d"));
    assert.deepEqual(shown(), ["d"]);
  });

  it("inserts earlier entries before the others, none twice", () => {
    conversation.reset([text("c")], true);
    conversation.prepend([text("a"), text("b"), text("c")], false);
    assert.deepEqual(shown(), ["a", "b", "c"]);
    assert.equal(conversation.hasEarlier, false);
  });

  it("adds a delta to the last row only, and new rows once it is long", () => {
    load(text("a"), text("b", LONG));
    const [first, second] = conversation.rows;
    conversation.apply({ type: "append", id: "b", delta: "more" });
    assert.deepEqual(shown(), ["a", LONG + "more"]);
    conversation.apply({ type: "append", id: "b", delta: " text\n\nnext block\n\n" });
    conversation.apply({ type: "append", id: "b", delta: "and on" });
    assert.equal(conversation.rows[0], first);
    assert.equal(conversation.rows[1], second);
    assert.ok(!changed.includes(first!));
    assert.equal(
      conversation.rows
        .slice(1)
        .map((row) => row.text)
        .join(""),
      `${LONG}more text\n\nnext block\n\nand on`,
    );
    shown();
  });

  it("changes nothing when a part is replaced with the text that was streamed", () => {
    load(text("a", "Hel"));
    conversation.apply({ type: "append", id: "a", delta: "lo" });
    changed.length = 0;
    conversation.apply({ type: "put", entry: text("a", "Hello"), after: undefined });
    assert.deepEqual(changed, []);
    assert.deepEqual(shown(), ["Hello"]);
  });

  it("keeps the rows of an answer whose end is trimmed when it is complete", () => {
    load(text("a", `${LONG}${LONG}end `), text("b"));
    const [first, second] = conversation.rows;
    conversation.apply({ type: "append", id: "a", delta: "of it\n\n" });
    conversation.apply({ type: "put", entry: text("a", `${LONG}${LONG}end of it`), after: undefined });
    assert.deepEqual(shown(), [LONG, `${LONG}end of it`, "b"]);
    assert.equal(conversation.rows[0], first);
    assert.equal(conversation.rows[1], second);
    conversation.apply({ type: "put", entry: text("a", LONG.trim()), after: undefined });
    assert.deepEqual(shown(), [LONG.trim(), "b"]);
    assert.equal(conversation.rows[0], first);
    conversation.apply({ type: "append", id: "a", delta: "\n\nand on" });
    assert.deepEqual(shown(), [`${LONG}and on`, "b"]);
    assert.equal(conversation.rows[0], first);
  });

  it("lays out a text again when it was rewritten", () => {
    load(text("a"), text("b", LONG + "end\n"), text("c"));
    conversation.apply({ type: "put", entry: text("b", "short"), after: "a" });
    assert.deepEqual(shown(), ["a", "short", "c"]);
  });

  it("redraws the row of a tool call that progressed", () => {
    load(tool("a"));
    conversation.apply({ type: "put", entry: tool("a", "completed"), after: undefined });
    assert.deepEqual(changed, [conversation.rows[0]]);
    assert.deepEqual(conversation.rows[0]?.item.entry, tool("a", "completed"));
  });

  it("inserts a new entry in its place", () => {
    load(text("a"), text("c"));
    conversation.apply({ type: "put", entry: text("b"), after: "a" });
    conversation.apply({ type: "put", entry: text("d"), after: "c" });
    conversation.apply({ type: "put", entry: text("0"), after: undefined });
    assert.deepEqual(shown(), ["0", "a", "b", "c", "d"]);
  });

  it("ignores entries before the loaded ones, which a later page contains", () => {
    conversation.reset([text("c")], true);
    conversation.apply({ type: "put", entry: text("b"), after: "a" });
    conversation.apply({ type: "put", entry: text("a"), after: undefined });
    conversation.apply({ type: "append", id: "a", delta: "x" });
    assert.deepEqual(shown(), ["c"]);
  });

  it("removes entries and whole messages", () => {
    load(text("a"), text("b", LONG + "end\n", "m2"), tool("c"), text("d", "d", "m2"));
    conversation.apply({ type: "remove", id: "a" });
    assert.deepEqual(shown(), [LONG, "end\n", "c"].concat("d"));
    conversation.apply({ type: "remove-message", messageID: "m2" });
    conversation.apply({ type: "remove", id: "unknown" });
    assert.deepEqual(shown(), ["c"]);
  });
});
