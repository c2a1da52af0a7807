import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { OpenRequest } from "../../src/engine/engine.ts";
import type { RequestAnswer } from "../../src/engine/server-model.ts";
import type { Child } from "../../src/engine/subagent.ts";
import { LaunchMemory } from "../../src/ui/commands/launch-memory.ts";
import { answerRequest, type FlowContext } from "../../src/ui/requests/answer-flow.ts";

function memento(): vscode.Memento {
  const kept = new Map<string, unknown>();
  return {
    keys: () => [...kept.keys()],
    get: (key: string, otherwise?: unknown) => kept.get(key) ?? otherwise,
    update: async (key: string, value: unknown) => void kept.set(key, value),
  } as vscode.Memento;
}

/** A box into which the test writes. */
class WritableBox {
  private readonly changed = new vscode.EventEmitter<string>();
  private readonly accepted = new vscode.EventEmitter<void>();
  private readonly hidden = new vscode.EventEmitter<void>();
  readonly onDidChangeValue = this.changed.event;
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerButton = new vscode.EventEmitter<vscode.QuickInputButton>().event;
  value = "";

  write(text: string): void {
    this.value = text;
    this.changed.fire(text);
  }

  accept(): void {
    this.accepted.fire();
  }

  show(): void {}

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}

describe("an answer that is being written", () => {
  const { createInputBox } = vscode.window;
  let box: WritableBox;
  let answers: RequestAnswer[];
  let context: FlowContext;
  const open: OpenRequest = {
    child: { agent: "build", description: "Ship" } as Child,
    request: {
      type: "question",
      id: "que_1",
      sessionID: "ses_1",
      questions: [{ question: "Which?", header: "Pick", options: [], multiple: false, custom: true }],
    },
  };

  beforeEach(() => {
    vscode.window.createInputBox = () => (box = new WritableBox()) as unknown as vscode.InputBox;
    answers = [];
    context = {
      engine: { openRequests: () => [open], onDidChangeRequests: () => ({ dispose: () => undefined }) },
      tasks: { answer: async (_: unknown, answer: RequestAnswer) => void answers.push(answer) },
      memory: new LaunchMemory(memento()),
    } as unknown as FlowContext;
  });

  afterEach(() => (vscode.window.createInputBox = createInputBox));

  it("is there again after Escape, and gone once it was given", async () => {
    const left = answerRequest(context, open);
    box.write("The second one, as");
    box.hide();
    assert.equal(await left, undefined);

    const given = answerRequest(context, open);
    assert.equal(box.value, "The second one, as");
    box.write("The second one.");
    box.accept();
    assert.deepEqual(await given, { type: "question", answers: [["The second one."]] });
    assert.equal(answers.length, 1);

    const again = answerRequest(context, open);
    assert.equal(box.value, "");
    box.hide();
    await again;
  });
});

describe("what was written for a launch", () => {
  it("is forgotten once it was used, but not what was written meanwhile", () => {
    const memory = new LaunchMemory(memento());
    memory.keepDraft("launch", "First");
    memory.keepDraft("launch", "Second");
    memory.dropDraft("launch", "First");
    assert.equal(memory.draft("launch"), "Second");
    memory.dropDraft("launch", "Second");
    assert.equal(memory.draft("launch"), "");
  });
});
