import assert from "node:assert/strict";
import { join } from "node:path";
import * as vscode from "vscode";
import type { PermissionRequest, QuestionRequest, RequestAnswer } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { plainMarkdown, visible, withoutIcons, withoutLinks } from "../../src/ui/plain-text.ts";
import { alwaysWords, asker, requestWords } from "../../src/ui/requests/request-words.ts";
import { ModelClient } from "../support/model-client.ts";
import { script } from "../support/script.ts";
import { until } from "../support/wait.ts";

function permission(
  kind: string,
  metadata: Readonly<Record<string, unknown>> = {},
  patterns: readonly string[] = ["*"],
  always: readonly string[] = ["*"],
): PermissionRequest {
  return {
    type: "permission",
    id: "per_1",
    sessionID: "ses_1",
    permission: kind,
    patterns,
    always,
    metadata,
  };
}

const folder = (): string => vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? assert.fail("no folder");

describe("a request in words", () => {
  /** What OpenCode sends for each kind, and what a user reads of it. */
  const kinds: readonly (readonly [() => PermissionRequest, string])[] = [
    [
      () => permission("bash", { command: "git push && ls" }, ["git push", "ls"]),
      "W asks to run: git push && ls",
    ],
    [
      () => permission("edit", { filepath: join(folder(), "src", "a.ts"), diff: "…" }),
      "W asks to change src/a.ts",
    ],
    [() => permission("read", {}, [join(folder(), ".env").slice(1)]), "W asks to read .env"],
    [() => permission("read", {}, ["src/a.ts"]), "W asks to read src/a.ts"],
    [
      () => permission("external_directory", { filepath: "/etc/hostname", parentDir: "/etc" }, ["/etc/*"]),
      "W asks to access files outside the folder: /etc/hostname",
    ],
    [
      () => permission("external_directory", { command: "rm -r /etc/x", directories: ["/etc"] }, ["/etc/*"]),
      "W asks to access files outside the folder: rm -r /etc/x",
    ],
    [
      () =>
        permission("webfetch", { url: "https://example.org/x", format: "text" }, ["https://example.org/x"]),
      "W asks to fetch https://example.org/x",
    ],
    [() => permission("grep", { pattern: "two" }, ["two"]), "W asks to search files for: two"],
    [
      () => permission("task", { description: "Look", subagent_type: "general" }, ["general"]),
      "W asks to launch the subagent general: Look",
    ],
    [
      () => permission("doom_loop", { tool: "read", input: { a: 1 } }, ["read"]),
      'W made the same call several times and asks to continue: read {"a":1}',
    ],
    [() => permission("github_create_issue"), "W asks to use the tool github_create_issue"],
  ];
  for (const [request, sentence] of kinds)
    it(sentence, () => {
      const words = requestWords(request());
      assert.equal(words.sentence("W", words.subject), sentence);
      assert.ok(words.title.length > 0 && words.icon.length > 0);
    });

  it("a question with others after it says how many follow", () => {
    const question = { question: "Which?", header: "Pick", options: [], multiple: false, custom: true };
    const request: QuestionRequest = {
      type: "question",
      id: "que_1",
      sessionID: "ses_1",
      questions: [question, question],
    };
    assert.equal(requestWords(request).title, "Pick");
    assert.equal(requestWords(request).sentence("W", "Which?"), "W asks: Which? (and 1 more question)");
  });

  it("the asking agent, and what Always Allow covers", () => {
    assert.equal(asker({ agent: "build", description: "Ship" }), '"Ship" (build)');
    assert.equal(asker({ description: "Ship" }), 'The agent of "Ship"');
    assert.equal(asker({ description: "Sh\nip\u202e" }), 'The agent of "Sh ip\\u{202e}"');
    assert.match(
      alwaysWords(permission("edit")),
      /^All requests of this kind, .* until the server restarts$/,
    );
    assert.match(alwaysWords(permission("bash", {}, [], ["git push *"])), /^git push \*, for every agent/);
  });

  it("agents' text makes no link and no icon, and hides nothing", () => {
    assert.equal(withoutLinks("[x](command:y)"), "[x] (command:y)");
    assert.equal(withoutIcons("$(bug) $(sync~spin)"), "\\$(bug) \\$(sync~spin)");
    assert.equal(plainMarkdown("**x**\n[y](z)"), "\\*\\*x\\*\\* \\[y\\]\\(z\\)");
    assert.equal(visible("rm a\u202e\u200b\u0007\n\tb"), "rm a\\u{202e}\\u{200b}\\u{7}\n\tb");
    assert.equal(requestWords(permission("bash", { command: "a\u202eb" })).subject, "a\\u{202e}b");
  });
});

describe("requests answered from code", () => {
  const model = ModelClient.fromEnv();
  let api: AsyncAgentsApi;

  before(async function () {
    this.timeout(120_000);
    api = await (
      vscode.extensions.getExtension<AsyncAgentsApi>("async-agents.opencode-async-agents") ?? assert.fail()
    ).activate();
    await api.ready();
  });

  /** A task that asks two questions, the second of which takes several answers. */
  async function asking(): Promise<Task> {
    const options = ["A", "B"].map((label) => ({ label, description: "" }));
    const questions = [
      { header: "One", question: "Which one?", options },
      { header: "Several", question: "Which ones?", options, multiple: true },
    ];
    const task = await api.tasks.launch({
      prompt: script([{ tools: [{ name: "question", args: { questions } }] }, { text: "Done." }]),
      agent: "build",
    });
    await until("the question", () => api.tasks.get(task.id)?.progress?.phase === "needs-answer");
    return task;
  }

  it("an invalid answer is refused and changes nothing; a valid one is sent", async () => {
    const task = await asking();
    const question = (...answers: string[][]): RequestAnswer => ({ type: "question", answers });
    const refusals: readonly (readonly [RequestAnswer, RegExp, string?])[] = [
      [{ type: "permission", reply: "once" }, /answer to a question must be of that type/],
      [question(["A"]), /one list for each of the 2 questions/],
      [question(["A", "B"], ["A"]), /"Which one\?" takes one answer/],
      [question(["A"], []), /"Which ones\?" takes at least one answer/],
      [{ type: "dismiss" }, /does not wait for this answer now/, "que_other"],
    ];
    for (const [given, message, requestID] of refusals)
      await assert.rejects(api.tasks.answer(task.id, given, requestID), message);
    assert.equal(api.tasks.get(task.id)?.progress?.phase, "needs-answer");
    const given = question(["my own"], ["A", "B"]);
    await api.tasks.answer(task.id, given);
    assert.equal((await api.tasks.wait(task.id, { timeoutMs: 30_000 }))?.status, "completed");
    await model.waitForRequest(
      ({ sessionID, messages }) => sessionID === task.id && JSON.stringify(messages).includes("my own"),
    );
    await assert.rejects(api.tasks.answer(task.id, given), /does not wait for this answer now/);
  });

  it("a dismissed question ends the task with an error", async () => {
    const task = await asking();
    await api.tasks.answer(task.id.slice(-6), { type: "dismiss" });
    assert.equal((await api.tasks.wait(task.id, { timeoutMs: 30_000 }))?.status, "error");
  });
});
