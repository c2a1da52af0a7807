import assert from "node:assert/strict";

import { ABORTED } from "../../../src/engine/server-model.ts";
import { NOTICE_MARK } from "../../../src/engine/asked.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { TranscriptChange } from "../../../src/engine/transcript.ts";
import type { ConversationEntry, EntryChange } from "../../../src/protocol/output.ts";
import { ChangeBatch } from "../../../src/daemon/conversation/change-batch.ts";
import { outputPage } from "../../../src/ui/output/html.ts";
import { transcriptMarkdown } from "../../../src/daemon/conversation/transcript-markdown.ts";
import { findExpression } from "../../../src/engine/find-text.ts";
import {
  findInTools,
  findTool,
  toolFile,
  toolText,
  toToolDetail,
} from "../../../src/daemon/conversation/tool-model.ts";
import {
  entriesOf,
  pageOf,
  perspectiveOf,
  toEntryChanges,
} from "../../../src/daemon/conversation/entries.ts";
import { toTaskView } from "../../../src/ui/output/view-model.ts";
import { relativePath } from "../../../src/protocol/relative-path.ts";
import { lastAnswer } from "../../../src/engine/turn.ts";
import { FakeTranscript, fakeSubagent, fakeTask, NOW } from "../../support/panel-page/fake-task.ts";

function entries(transcript: FakeTranscript, task = fakeTask()): ConversationEntry[] {
  const perspective = perspectiveOf(task, transcript.messages);
  return transcript.messages.flatMap((message) => entriesOf(message, perspective));
}

describe("the output panel's view model", () => {
  it("shows a task with its model, kind and activity", () => {
    const task = fakeTask({
      status: "running",
      model: { providerID: "p", modelID: "m", variant: "high" },
      progress: {
        phase: "tool",
        toolCalls: 3,
        toolCounts: { read: 2, bash: 1 },
        recentTools: [
          { tool: "read", status: "completed" },
          { tool: "bash", title: "Test", status: "running" },
        ],
        lastUpdate: NOW,
      },
    });
    const view = toTaskView(task, { translate: english });
    assert.equal(view.model, "p/m (high)");
    assert.equal(view.shortID, task.id.slice(-6));
    assert.equal(view.kind, "task");
    assert.deepEqual(view.activity?.tool, { name: "bash", title: "Test" });
    assert.equal(toTaskView(fakeTask(), { translate: english }).activity, undefined);
  });

  it("hides what is not meant for users", () => {
    const transcript = new FakeTranscript().user("visible").user("hidden", { synthetic: true }).assistant();
    const messageID = transcript.messages.at(-1)!.info.id;
    transcript.part({ type: "other", kind: "step-start", id: "p", sessionID: "s", messageID });
    assert.deepEqual(
      entries(transcript).map((entry) => "text" in entry && entry.text),
      ["visible"],
    );
  });

  it("distinguishes the prompt from follow-ups, inherited prompts and notices", () => {
    const transcript = new FakeTranscript()
      .user("old", { created: NOW - 900_000 })
      .user("notice", { metadata: { [NOTICE_MARK]: "ses_x" } })
      .user("prompt")
      .user("again");
    const origins = (isForked: boolean): unknown[] =>
      entries(transcript, fakeTask({ isForked })).map((entry) => entry.kind === "prompt" && entry.origin);
    assert.deepEqual(origins(true), ["inherited", "notice", "prompt", "follow-up"]);
    assert.deepEqual(origins(false), ["prompt", "notice", "follow-up", "follow-up"]);
    // A conversation that is handed over as text is no prompt.
    const handedOver = new FakeTranscript()
      .user("old", { created: NOW - 900_000 })
      .user("the conversation", { synthetic: true })
      .user("prompt");
    assert.deepEqual(
      entries(handedOver, fakeTask({ isForked: true })).map(
        (entry) => entry.kind === "prompt" && entry.origin,
      ),
      ["inherited", "prompt"],
    );
  });

  it("gives a tool call a title, from its input if it has none", () => {
    const transcript = new FakeTranscript()
      .assistant()
      .ran("bash", { command: "npm  test\n -- x" }, "", "")
      .ran("read", { filePath: "/a" }, "", "a")
      .tool("x", { status: "pending", input: {} });
    assert.deepEqual(
      entries(transcript).map((entry) => entry.kind === "tool" && entry.title),
      ["npm test -- x", "a", undefined],
    );
  });

  it("ends a message that failed with its error", () => {
    const failed = new FakeTranscript()
      .assistant({ error: { name: "APIError", message: "" } })
      .text("so far");
    const aborted = new FakeTranscript().assistant({
      error: { name: ABORTED, message: "Aborted" },
    });
    const [text, error] = entries(failed);
    assert.equal(text?.kind, "text");
    assert.ok(error?.kind === "error" && error.message === "APIError" && !error.interrupted);
    const [interruption] = entries(aborted);
    assert.ok(interruption?.kind === "error" && interruption.interrupted);
  });

  it("pages from the newest entry back to the first", () => {
    const transcript = new FakeTranscript()
      .user("a")
      .assistant()
      .text("b".repeat(500))
      .text("c")
      .assistant()
      .text("d");
    const perspective = perspectiveOf(fakeTask(), transcript.messages);
    const seen: string[] = [];
    let before: string | undefined;
    for (let earlier = true; earlier;) {
      const page = pageOf(transcript.messages, perspective, 300, before)!;
      seen.unshift(...page.entries.map(({ id }) => id));
      before = seen[0];
      earlier = page.earlier;
    }
    assert.deepEqual(
      seen,
      entries(transcript).map(({ id }) => id),
    );
    assert.equal(pageOf(transcript.messages, perspective, 300, "unknown"), undefined);
    assert.deepEqual(pageOf([], perspective, 300), { entries: [], earlier: false });
  });

  it("reports each change with its place", () => {
    const transcript = new FakeTranscript();
    const told: EntryChange[] = [];
    transcript.onDidChange((change) => {
      const { messages } = transcript;
      const plain = change as Exclude<TranscriptChange, { type: "reset" }>;
      told.push(...toEntryChanges(plain, transcript, perspectiveOf(fakeTask(), messages)));
    });
    transcript.user("prompt").user("hidden", { synthetic: true }).assistant().text("a");
    transcript.stream("b");
    const [prompt, , answer] = transcript.messages;
    transcript.removePart(answer!.info.id, answer!.parts[0]!.id);
    transcript.removeMessage(answer!.info.id);
    const promptID = prompt!.parts[0]!.id;
    assert.deepEqual(
      told.map((change) => ({ ...change, ...("entry" in change ? { entry: change.entry.kind } : {}) })),
      [
        { type: "put", entry: "prompt", after: undefined },
        { type: "remove", id: transcript.messages[1]!.parts[0]!.id },
        { type: "put", entry: "text", after: promptID },
        { type: "append", id: "prt_006", delta: "b" },
        { type: "remove", id: "prt_006" },
        { type: "remove-message", messageID: answer!.info.id },
      ],
    );
  });

  it("reports the parts of a message that came before it", () => {
    const transcript = new FakeTranscript().user("prompt").assistant().text("a").text("b");
    const { messages } = transcript;
    const { info } = messages[1]!;
    const change = { type: "message", info } as const;
    const perspective = perspectiveOf(fakeTask(), messages);
    const part = messages[1]!.parts[0]!;
    const early = toEntryChanges({ type: "part", part }, { messages: messages.slice(0, 1) }, perspective);
    assert.deepEqual(early, [{ type: "remove", id: "prt_004" }]);
    assert.deepEqual(
      toEntryChanges(change, transcript, perspective).map(
        (one) => one.type === "put" && [one.entry.id, one.after],
      ),
      [
        ["prt_004", "prt_002"],
        ["prt_005", "prt_004"],
      ],
    );
  });

  it("shortens a tool's input and output, and has all of it on request", () => {
    const long = "x".repeat(50_000);
    const transcript = new FakeTranscript()
      .assistant()
      .ran("write", { filePath: "/a", content: long, n: { a: 1 } }, long);
    const id = transcript.messages[0]!.parts[0]!.id;
    const tool = findTool(transcript.messages, id)!;
    const detail = toToolDetail(tool);
    assert.deepEqual(
      detail.input.map(({ name, isFile }) => [name, isFile]),
      [
        ["filePath", true],
        ["n", false],
      ],
    );
    assert.equal(detail.diff?.total, 50_001);
    assert.equal(detail.output?.total, 50_000);
    assert.ok(detail.output.text.length < 50_000);
    assert.equal(toolText(tool, ""), long);
    assert.equal(toolText(tool, "n"), '{\n  "a": 1\n}');
    assert.equal(toolText(tool, "constructor"), undefined);
    assert.equal(toolFile(tool, "filePath"), "/a");
    assert.equal(toolFile(tool, "content"), undefined);
    assert.equal(findTool(transcript.messages, "unknown"), undefined);
  });

  it("shows what a command had printed before it was stopped", () => {
    const state = { status: "error", input: {}, error: "Tool execution aborted", start: 1, end: 2 } as const;
    const transcript = new FakeTranscript()
      .assistant()
      .tool("bash", { status: "error", input: {}, error: "x", start: 1, end: 2 });
    const call = findTool(transcript.messages, transcript.messages[0]!.parts[0]!.id)!;
    assert.equal(toolText({ ...call, state }, ""), "Tool execution aborted");
    const stopped = { ...call, state: { ...state, partialOutput: "3 tests failed" } };
    assert.equal(toolText(stopped, ""), "3 tests failed\n\nTool execution aborted");
  });

  it("names files relative to the folder, with and without Git", () => {
    assert.equal(relativePath("/tmp/work/src/a.ts", "/tmp/work"), "src/a.ts");
    assert.equal(relativePath("tmp/work/src/a.ts", "/tmp/work"), "src/a.ts");
    assert.equal(relativePath("C:\\work\\a.ts", "C:\\work"), "a.ts");
    assert.equal(relativePath("me\\work\\a.ts", "C:\\me\\work"), "a.ts");
    for (const path of ["/tmp/workshop/a.ts", "/tmp/work", "/tmp/work/", "src/a.ts", ""])
      assert.equal(relativePath(path, "/tmp/work"), path);
    // In a repository, this is a folder in the folder.
    assert.equal(relativePath("app/page.tsx", "/app"), "app/page.tsx");
    assert.equal(relativePath("work\\a.ts", "C:\\work"), "work\\a.ts");
    assert.equal(relativePath("/app/page.tsx", "/app"), "page.tsx");
    assert.equal(relativePath("/tmp/a.ts", undefined), "/tmp/a.ts");
    assert.equal(relativePath("/a.ts", "/"), "/a.ts");
    const transcript = new FakeTranscript()
      .assistant()
      .ran("read", { filePath: "/tmp/work/a.ts" }, "", "tmp/work/a.ts");
    const perspective = perspectiveOf(fakeTask(), transcript.messages, "/tmp/work");
    const [entry] = entriesOf(transcript.messages[0]!, perspective);
    assert.ok(entry?.kind === "tool" && entry.title === "a.ts");
    const { input } = toToolDetail(findTool(transcript.messages, "prt_002")!, "/tmp/work");
    assert.equal(input[0]?.value.text, "a.ts");
  });

  it("shows the answer of a subagent without tags", () => {
    const output = (text: string, launched?: string) => {
      const state = {
        status: "completed",
        input: {},
        output: text,
        title: "",
        start: NOW,
        end: NOW,
      } as const;
      const transcript = new FakeTranscript().assistant().tool("task", state, launched);
      return toolText(findTool(transcript.messages, "prt_002")!, "");
    };
    const wrapped =
      '<task id="ses_b" state="completed">\n<task_result>\nFound <b>two</b>.\n\nEnd\n</task_result>\n</task>';
    assert.equal(output(wrapped, "ses_b"), "Found <b>two</b>.\n\nEnd");
    assert.equal(output("plain", "ses_b"), "plain");
    assert.equal(output(wrapped), wrapped);
  });

  it("shows a call's questions as text, in full", () => {
    const long = `Which ${"long ".repeat(30)}one?`;
    const questions = [
      { question: long, header: "H", options: [{ label: "A", description: "first" }, { label: "B" }] },
    ];
    const transcript = new FakeTranscript()
      .assistant()
      .ran("question", { questions }, "", "Asked 1 question");
    const [entry] = entries(transcript);
    assert.ok(entry?.kind === "tool" && entry.title === long);
    const { input } = toToolDetail(findTool(transcript.messages, "prt_002")!);
    assert.equal(input[0]?.value.text, `${long}\n- A: first\n- B`);
    for (const odd of [
      { question: 1 },
      null,
      { question: "A", options: "B" },
      { question: "A", options: [null] },
    ]) {
      const { messages } = new FakeTranscript().assistant().ran("ask", { questions: [odd] }, "");
      const { value } = toToolDetail(findTool(messages, "prt_002")!).input[0]!;
      assert.deepEqual(JSON.parse(value.text), [odd]);
    }
  });

  it("finds text in the details of tool calls", () => {
    const transcript = new FakeTranscript()
      .assistant()
      .ran("read", { filePath: "/a", n: "Needle" }, "one needle\nNEE\u001b[31mDLE")
      .text("needle")
      .ran("read", {}, "nothing");
    const find = (query: string) => findInTools(transcript.messages, findExpression(query)!, undefined);
    assert.deepEqual(find("needle"), { prt_002: 3 });
    assert.deepEqual(find("one  needle nee"), { prt_002: 1 });
    assert.deepEqual(find("n.*e"), {});
    assert.equal(findExpression("  "), undefined);
  });

  it("finds only the text that the details show", () => {
    const diff = "Index: needle.ts\n====\n--- needle.ts\n+++ needle.ts\n@@ -1 +1 @@\n-needle\n+it";
    const metadata = { diff };
    const transcript = new FakeTranscript()
      .assistant()
      .tool("edit", { status: "completed", input: {}, output: "", metadata, title: "", start: NOW, end: NOW })
      .ran("bash", {}, "needle 1 %\rneedle 2 %\nneedle");
    assert.deepEqual(findInTools(transcript.messages, findExpression("needle")!, undefined), {
      prt_002: 1,
      prt_003: 2,
    });
    // Lines of different kinds are apart.
    assert.deepEqual(findInTools(transcript.messages, findExpression("needle +it")!, undefined), {});
  });

  it("shows a call's change as a diff, instead of the fields it is made of", () => {
    const detail = (tool: string, input: Record<string, unknown>, metadata?: Record<string, unknown>) => {
      const transcript = new FakeTranscript()
        .assistant()
        .tool(tool, { status: "running", input, metadata, start: NOW });
      const { diff, input: fields } = toToolDetail(findTool(transcript.messages, "prt_002")!);
      return [diff?.text, fields.map(({ name }) => name)];
    };
    const edit = { filePath: "/a", oldString: "one\ntwo\nthree\n", newString: "one\n2\nthree\n" };
    assert.deepEqual(detail("edit", edit), [" one\n-two\n+2\n three", ["filePath"]]);
    assert.deepEqual(detail("edit", edit, { diff: "@@ -1 +1 @@" }), ["@@ -1 +1 @@", ["filePath"]]);
    assert.deepEqual(detail("write", { filePath: "/a", content: "x\ny" }), ["+x\n+y", ["filePath"]]);
    assert.deepEqual(detail("apply_patch", { patchText: "*** Begin Patch" }), ["*** Begin Patch", []]);
    assert.deepEqual(detail("read", { filePath: "/a", content: "x" }), [undefined, ["filePath", "content"]]);
    assert.deepEqual(detail("edit", { oldString: 1 }), [undefined, ["oldString"]]);
  });

  it("shows no change for a call that failed", () => {
    const failed = { status: "error", input: { content: "x" }, error: "no", start: NOW, end: NOW } as const;
    const transcript = new FakeTranscript().assistant().tool("write", failed);
    const detail = toToolDetail(findTool(transcript.messages, "prt_002")!);
    assert.equal(detail.diff, undefined);
    assert.deepEqual(
      detail.input.map(({ name }) => name),
      ["content"],
    );
  });

  it("shortens a long diff between lines", () => {
    const transcript = new FakeTranscript()
      .assistant()
      .ran("write", { content: "word\n".repeat(10_000) }, "");
    const { diff } = toToolDetail(findTool(transcript.messages, "prt_002")!);
    assert.ok(diff && diff.text.length < diff.total);
    assert.ok(diff.text.endsWith("\n+word"));
  });

  it("shows a subagent as one, idle and not forked", () => {
    const view = toTaskView(fakeSubagent(), { translate: english });
    assert.equal(view.kind, "subagent");
    assert.equal(view.status, "idle");
    assert.equal(view.isForked, false);
  });

  it("finds the newest answer", () => {
    const transcript = new FakeTranscript().user("a");
    assert.equal(lastAnswer(transcript.messages), undefined);
    transcript.assistant().text("first").assistant().text("second").user("b");
    assert.equal(lastAnswer(transcript.messages), "second");
  });

  it("writes the conversation as one document with intact fences", () => {
    const transcript = new FakeTranscript()
      .user("Do it")
      .assistant()
      .ran("bash", { command: "x" }, "````\nout")
      .text("Done");
    const text = transcriptMarkdown("Title", transcript.messages);
    assert.match(text, /^# Title\n\n## User\n\nDo it\n\n## build\n\n### bash \(completed\)/);
    assert.match(text, /\n`````\n````\nout\n`````\n\nDone\n$/);
  });
});

describe("ChangeBatch", () => {
  const entry = (text: string): ConversationEntry => ({ kind: "text", id: "a", messageID: "m", text });

  function sentFor(...changes: EntryChange[]): readonly EntryChange[] {
    const sent: (readonly EntryChange[])[] = [];
    const batch = new ChangeBatch((changes) => sent.push(changes));
    for (const change of changes) batch.add(change);
    batch.flush();
    batch.flush();
    assert.equal(sent.length, 1);
    return sent[0]!;
  }

  it("merges many changes of the same entry", () => {
    const append = (id: string, delta: string): EntryChange => ({ type: "append", id, delta });
    const put = (text: string): EntryChange => ({ type: "put", entry: entry(text), after: "z" });
    assert.deepEqual(sentFor(append("a", "1"), append("b", "x"), append("a", "2")), [
      append("a", "12"),
      append("b", "x"),
    ]);
    assert.deepEqual(sentFor(put("1"), append("a", "2")), [put("12")]);
    assert.deepEqual(sentFor(append("a", "2"), put("12")), [put("12")]);
  });

  it("keeps the order around removals", () => {
    const put: EntryChange = { type: "put", entry: entry("1"), after: undefined };
    const remove: EntryChange = { type: "remove", id: "a" };
    assert.deepEqual(sentFor(put, remove, put), [put, remove, put]);
  });
});

describe("outputPage", () => {
  it("allows only its own script and style, and escapes its values", () => {
    const html = outputPage({
      taskID: '"><script>',
      title: "</title><script>",
      loading: "<b>",
      language: "en",
      scriptUri: "https://x/webview.js",
      styleUri: "https://x/output.css",
      cspSource: "https://x",
      nonce: "n0nce",
    });
    // The whole of it: whatever is added lets something in or out.
    const policies = [...html.matchAll(/<meta http-equiv="Content-Security-Policy" content="([^"]*)"/g)];
    assert.deepEqual(
      policies.map(([, policy]) => policy),
      [
        "default-src 'none'; script-src 'nonce-n0nce'; style-src https://x; img-src data:; base-uri 'none'; form-action 'none'",
      ],
    );
    assert.equal(html.match(/<script/g)?.length, 1);
    assert.doesNotMatch(html, /unsafe-|<b>/);
  });
});
