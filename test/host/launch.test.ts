import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import type { Task } from "../../src/engine/task.ts";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { PartlyLaunched } from "../../src/ui/commands/launching.ts";
import { launchPrompt } from "../../src/ui/commands/editor-commands.ts";
import type { ContextKeys } from "../../src/ui/context-keys.ts";
import { PromptEditors } from "../../src/ui/prompt-editors.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

describe("a batch of which some tasks are refused", () => {
  const launched: string[] = [];
  /** The prompts, the agents, and the prompts for an agent that are refused. */
  let refused: readonly string[];
  let promptEditors: PromptEditors;
  let document: vscode.TextDocument;

  const memento: vscode.Memento = {
    keys: () => [],
    get: <T>(_: string, fallback?: T) => fallback as T,
    update: async () => undefined,
  };

  /** What a launch needs; only the server's answers are fake. */
  const context = (): CommandContext => {
    const folder = {
      connector: { ensureConnected: async () => undefined },
      session: { ensure: async () => "ses_parent" },
      calls: {
        launch: async ({ prompt, agent = "" }: { prompt: string; agent?: string }) => {
          if ([prompt, agent, `${agent}: ${prompt}`].some((each) => refused.includes(each)))
            throw new Refusal("unavailable", "The server is gone.");
          launched.push(`${agent}: ${prompt}`);
          return record({}) as Task;
        },
      },
    };
    return {
      folders: { opened: Promise.resolve(), all: [folder], current: folder },
      memory: { keepAgent: () => undefined, keepPrompts: () => undefined },
      promptEditors,
      reveal: () => undefined,
      showLaunching: () => new vscode.Disposable(() => undefined),
    } as unknown as CommandContext;
  };

  async function launchAs(agents: readonly string[], splits: boolean, text: string): Promise<void> {
    await promptEditors.open({ kind: "launch", plan: { agents, splits } }, text);
    document = await until("the editor of the prompts", () =>
      vscode.workspace.textDocuments.find((each) => each.getText() === text),
    );
    await assert.rejects(launchPrompt(context(), document.uri), (error) => {
      assert.ok(error instanceof PartlyLaunched);
      assert.match(error.message, /Launched \d of \d tasks\. The others failed: The server is gone\.$/);
      return true;
    });
  }

  beforeEach(() => {
    launched.splice(0);
    promptEditors = new PromptEditors(memento, { set: () => undefined } as unknown as ContextKeys);
  });

  afterEach(() => promptEditors.dispose());

  it("keeps in the editor only the prompts that were not launched", async () => {
    refused = ["Second", "Fourth"];
    await launchAs(["general"], true, "First\n\n---\nSecond\n---\nThird\n---\nFourth");
    assert.deepEqual(launched, ["general: First", "general: Third"]);
    assert.equal(document.getText(), "Second\n\n---\n\nFourth");
  });

  it("continues only with the agents that did not get the prompt", async () => {
    refused = ["plan"];
    await launchAs(["general", "plan"], false, "Look\n---\ninto it");
    assert.deepEqual(launched, ["general: Look\n---\ninto it"]);
    assert.equal(document.getText(), "Look\n---\ninto it");
    const target = promptEditors.target(document.uri);
    assert.deepEqual(target?.kind === "launch" && target.plan.agents, ["plan"]);
  });

  it("continues only with the prompts that an agent did not get, if other agents got them", async () => {
    refused = ["plan: First", "general: Second"];
    await launchAs(["general", "plan"], true, "First\n---\nSecond");
    assert.deepEqual(launched.splice(0), ["general: First", "plan: Second"]);
    const [{ command } = assert.fail("no code lens")] = await promptEditors.provideCodeLenses(document);
    assert.equal(command?.title, "Launch 2 Tasks (Ctrl+Enter)");
    refused = ["general: Second"];
    await assert.rejects(launchPrompt(context(), document.uri), PartlyLaunched);
    assert.deepEqual(launched.splice(0), ["plan: First"]);
    refused = [];
    await launchPrompt(context(), document.uri);
    assert.deepEqual(launched, ["general: Second"]);
  });

  it("opens an editor with its own text, even if the editor restores that of a closed document of its name", async () => {
    const { openTextDocument } = vscode.workspace;
    const restored = await openTextDocument({ language: "markdown", content: "An earlier prompt" });
    vscode.workspace.openTextDocument = async () => restored;
    try {
      await promptEditors.open({ kind: "launch", plan: { agents: [], splits: false } }, "A new one");
    } finally {
      vscode.workspace.openTextDocument = openTextDocument;
    }
    assert.equal(restored.getText(), "A new one");
  });
});
