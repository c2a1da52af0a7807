import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { RequestAnswer } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { plainMarkdown, visible, withoutIcons, withoutLinks } from "../../src/ui/plain-text.ts";
import { asker } from "../../src/ui/requests/asker.ts";
import { ModelClient } from "../support/model-client.ts";
import { script } from "../support/script.ts";
import { until } from "../support/wait.ts";

describe("a request in the editor", () => {
  it("names the agent that asks", () => {
    assert.equal(asker({ agent: "build", description: "Ship" }), '"Ship" (build)');
    assert.equal(asker({ description: "Ship" }), 'The agent of "Ship"');
    assert.equal(asker({ description: "Sh\nip\u202e" }), 'The agent of "Sh ip\\u{202e}"');
  });

  it("makes no link and no icon of agents' text, and hides nothing", () => {
    assert.equal(withoutLinks("[x](command:y)"), "[x] (command:y)");
    assert.equal(withoutIcons("$(bug) $(sync~spin)"), "\\$(bug) \\$(sync~spin)");
    assert.equal(plainMarkdown("**x**\n[y](z)"), "\\*\\*x\\*\\* \\[y\\]\\(z\\)");
    assert.equal(visible("rm a\u202e\u200b\u0007\n\tb"), "rm a\\u{202e}\\u{200b}\\u{7}\n\tb");
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
