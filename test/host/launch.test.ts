import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import { NO_ISOLATION } from "../../src/engine/settings.ts";
import type { Task } from "../../src/engine/task.ts";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { PartlyLaunched } from "../../src/ui/commands/launching.ts";
import { launchPrompt } from "../../src/ui/commands/editor-commands.ts";
import { LaunchMemory } from "../../src/ui/commands/launch-memory.ts";
import { launchAsking } from "../../src/ui/commands/launch-wizard.ts";
import { resumeAsking } from "../../src/ui/commands/row-commands.ts";
import type { ContextKeys } from "../../src/ui/context-keys.ts";
import { PromptEditors } from "../../src/ui/prompt-editors.ts";
import { BACK } from "../../src/ui/wizard.ts";
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
    vscode.window.createInputBox = () =>
      new AnsweredInput(["Write in an Editor"]) as unknown as vscode.InputBox;
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

describe("the dialog of a launch", () => {
  const { createInputBox, createQuickPick } = vscode.window;

  afterEach(() => Object.assign(vscode.window, { createInputBox, createQuickPick }));

  it("no longer forks a conversation of a folder once another folder is selected", async () => {
    const folder = (name: string) => ({
      name,
      uri: vscode.Uri.file(`/${name}`),
      connector: { ensureConnected: async () => undefined },
      settings: { engine: () => ({ isolation: NO_ISOLATION }) },
      session: { session: { id: `ses_${name}`, title: `In ${name}` } },
      calls: { agents: async () => [{ name: "general" }], models: async () => [] },
    });
    const all = [folder("api"), folder("web")];
    const context = {
      folders: { opened: Promise.resolve(), all, current: all[0], use: () => undefined },
      known: { get: () => undefined },
      memory: new LaunchMemory(new MemoryMemento()),
    } as unknown as CommandContext;
    const asked: string[] = [];
    const answers: Answers = [
      "general",
      "Options",
      "Fork of the Active",
      BACK,
      BACK,
      "Select Folder",
      "web",
      "general",
    ];
    const createInput = (): unknown => new AnsweredInput(answers, asked);
    Object.assign(vscode.window, { createInputBox: createInput, createQuickPick: createInput });
    await launchAsking(context);
    assert.deepEqual(asked, [
      "Launch Task: Agent — api",
      "Launch Task: Prompt for general — api",
      "Launch Task: Options — api",
      "Launch Task: Options — api",
      "Fork: In api",
      "Launch Task: Agent — api",
      "Launch Task: Folder",
      "Launch Task: Agent — web",
      "Launch Task: Prompt for general — web",
    ]);
  });
});

type Answers = (string | typeof BACK)[];

/** A list or box that is answered at once: by a button or row with the next of the texts, by Back, or by closing it. */
class AnsweredInput {
  private readonly accepted = new vscode.EventEmitter<void>();
  private readonly hidden = new vscode.EventEmitter<void>();
  private readonly pressed = new vscode.EventEmitter<vscode.QuickInputButton>();
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerButton = this.pressed.event;
  readonly onDidChangeValue = new vscode.EventEmitter<string>().event;
  readonly onDidChangeSelection = new vscode.EventEmitter<never>().event;
  readonly onDidTriggerItemButton = new vscode.EventEmitter<never>().event;
  title = "";
  value = "";
  busy = false;
  buttons: readonly vscode.QuickInputButton[] = [];
  items: readonly vscode.QuickPickItem[] = [];
  selectedItems: readonly vscode.QuickPickItem[] = [];

  constructor(
    private readonly answers: Answers,
    private readonly asked?: string[],
  ) {}

  show(): void {
    setImmediate(() => {
      // The items of a list may still be read.
      if (this.busy) return this.show();
      this.asked?.push(this.title);
      const answer = this.answers.shift();
      if (answer === undefined) return this.hide();
      if (answer === BACK) return this.pressed.fire(vscode.QuickInputButtons.Back);
      const button = this.buttons.find(({ tooltip }) => tooltip === answer);
      if (button) return this.pressed.fire(button);
      const item = this.items.find(({ label }) => label.includes(answer));
      this.selectedItems = [item ?? assert.fail(`no ${answer}`)];
      this.accepted.fire();
    });
  }

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}
