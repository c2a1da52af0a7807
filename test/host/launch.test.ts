import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import type { Task } from "../../src/engine/task.ts";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { PartlyLaunched } from "../../src/ui/commands/launching.ts";
import { launchPrompt } from "../../src/ui/commands/editor-commands.ts";
import { LaunchMemory } from "../../src/ui/commands/launch-memory.ts";
import { resumeAsking } from "../../src/ui/commands/row-commands.ts";
import type { ContextKeys } from "../../src/ui/context-keys.ts";
import { PromptEditors } from "../../src/ui/prompt-editors.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";
import { MemoryMemento } from "./memory-parts.ts";

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

describe("a follow-up that is written in an editor", () => {
  const { createInputBox } = vscode.window;
  const task = record({ description: "Port", status: "completed" }) as Task;
  const connected: string[] = [];
  let promptEditors: PromptEditors;

  const folder = (name: string) => ({
    name,
    uri: vscode.Uri.file(`/${name}`),
    connector: { ensureConnected: async () => void connected.push(name) },
  });
  const [api, web] = [folder("api"), folder("web")];

  /** The first of the folders is the current one; only the given one knows the task. */
  const context = (all: readonly object[], knowing?: object): CommandContext =>
    ({
      folders: { opened: Promise.resolve(), all, current: all[0], of: () => knowing },
      known: { get: () => task },
      memory: new LaunchMemory(new MemoryMemento()),
      promptEditors,
      tasks: { resume: async () => task },
      reveal: () => undefined,
    }) as unknown as CommandContext;

  /** Opens the editor from the box, as its button does. */
  async function open(all: readonly object[]): Promise<vscode.Uri> {
    vscode.window.createInputBox = () => new EditorBox() as unknown as vscode.InputBox;
    await resumeAsking(context(all, web), task);
    const { document } = vscode.window.activeTextEditor ?? assert.fail("no editor");
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), "Go on.");
    await vscode.workspace.applyEdit(edit);
    return document.uri;
  }

  beforeEach(() => {
    connected.splice(0);
    promptEditors = new PromptEditors(new MemoryMemento(), {
      set: () => undefined,
    } as unknown as ContextKeys);
  });

  afterEach(() => {
    vscode.window.createInputBox = createInputBox;
    promptEditors.dispose();
  });

  it("connects the task's folder, even if that doesn't know the task yet", async () => {
    const uri = await open([api, web]);
    await launchPrompt(context([api, web]), uri);
    assert.deepEqual(connected, ["web"]);
  });

  it("is refused if the task's folder is no longer in the workspace, and connects no other one", async () => {
    const uri = await open([api, web]);
    await assert.rejects(launchPrompt(context([api]), uri), /no longer in the workspace/);
    assert.deepEqual(connected, []);
  });
});

/** An input box whose button to write in an editor is pressed at once. */
class EditorBox {
  private readonly hidden = new vscode.EventEmitter<void>();
  private readonly pressed = new vscode.EventEmitter<vscode.QuickInputButton | undefined>();
  readonly onDidChangeValue = new vscode.EventEmitter<string>().event;
  readonly onDidAccept = new vscode.EventEmitter<void>().event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerButton = this.pressed.event;
  buttons: readonly vscode.QuickInputButton[] = [];

  show(): void {
    const editor = this.buttons.find(({ tooltip }) => tooltip === "Write in an Editor");
    setImmediate(() => this.pressed.fire(editor));
  }

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}
