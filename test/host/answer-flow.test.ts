import assert from "node:assert/strict";
import * as vscode from "vscode";
import { inWords } from "../../src/daemon/request-words.ts";
import type { MirroredRequest } from "../../src/engine/folder-changes.ts";
import type { OpenRequest } from "../../src/engine/requests.ts";
import type { RequestAnswer } from "../../src/engine/server-model.ts";
import { NO_ISOLATION } from "../../src/engine/settings.ts";
import type { Child } from "../../src/engine/subagent.ts";
import type { Task } from "../../src/engine/task.ts";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { launchAsking } from "../../src/ui/commands/launch-wizard.ts";
import { LaunchMemory } from "../../src/ui/commands/launch-memory.ts";
import { resumeAsking } from "../../src/ui/commands/row-commands.ts";
import { answerRequest, type FlowContext } from "../../src/ui/requests/answer-flow.ts";
import { showRequest } from "../../src/ui/requests/request-notifications.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

function memento(): vscode.Memento {
  const kept = new Map<string, unknown>();
  return {
    keys: () => [...kept.keys()],
    get: (key: string, otherwise?: unknown) => kept.get(key) ?? otherwise,
    update: async (key: string, value: unknown) => void kept.set(key, value),
  } as vscode.Memento;
}

/** An input box that the test writes into. */
class WritableBox {
  private readonly changed = new vscode.EventEmitter<string>();
  private readonly accepted = new vscode.EventEmitter<void>();
  private readonly hidden = new vscode.EventEmitter<void>();
  readonly onDidChangeValue = this.changed.event;
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  private readonly triggered = new vscode.EventEmitter<vscode.QuickInputButton>();
  readonly onDidTriggerButton = this.triggered.event;
  buttons: readonly vscode.QuickInputButton[] = [];
  value = "";

  write(text: string): void {
    this.value = text;
    this.changed.fire(text);
  }

  accept(): void {
    this.accepted.fire();
  }

  press(tooltip: string): void {
    this.triggered.fire(this.buttons.find((button) => button.tooltip === tooltip)!);
  }

  show(): void {}

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}

describe("a half-written answer", () => {
  const { createInputBox } = vscode.window;
  let box: WritableBox;
  let answers: RequestAnswer[];
  let context: FlowContext;
  const open: OpenRequest<MirroredRequest> = {
    child: { agent: "build", description: "Ship" } as Child,
    request: inWords(
      {
        type: "question",
        id: "que_1",
        sessionID: "ses_1",
        questions: [{ question: "Which?", header: "Pick", options: [], multiple: false, custom: true }],
      },
      "/work",
    ),
  };

  beforeEach(() => {
    vscode.window.createInputBox = () => (box = new WritableBox()) as unknown as vscode.InputBox;
    answers = [];
    context = {
      known: { openRequests: () => [open], onDidChangeRequests: () => ({ dispose: () => undefined }) },
      tasks: { answer: async (_: unknown, answer: RequestAnswer) => void answers.push(answer) },
      memory: new LaunchMemory(memento()),
    } as unknown as FlowContext;
  });

  afterEach(() => (vscode.window.createInputBox = createInputBox));

  it("is kept after Escape, and discarded once it is sent", async () => {
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

  it("is there if the question is asked again while it is open, and kept when both are closed", async () => {
    const first = answerRequest(context, open);
    const firstBox = box;
    firstBox.write("The second one, as");
    const second = answerRequest(context, open);
    assert.equal(box.value, "The second one, as");
    firstBox.hide();
    box.hide();
    await Promise.all([first, second]);

    const again = answerRequest(context, open);
    assert.equal(box.value, "The second one, as");
    box.hide();
    await again;
  });

  it("is kept if it can't be sent, and asked for again", async () => {
    const failures = [new Error("no connection")];
    const refusing = {
      ...context,
      tasks: {
        answer: async (_: unknown, answer: RequestAnswer) => {
          const failure = failures.pop();
          if (failure) throw failure;
          answers.push(answer);
        },
      },
      logger: { error: () => undefined },
    } as unknown as FlowContext;
    const given = answerRequest(refusing, open);
    const first = box;
    first.write("The second one.");
    first.accept();
    await until("the second box", () => box !== first);
    assert.equal(box.value, "The second one.");
    box.accept();
    assert.deepEqual(await given, { type: "question", answers: [["The second one."]] });
    assert.equal(answers.length, 1);
  });
});

/** A list that the test ticks rows of. */
class TickedList {
  private readonly selections = new vscode.EventEmitter<readonly vscode.QuickPickItem[]>();
  private readonly triggers = new vscode.EventEmitter<vscode.QuickInputButton>();
  private readonly hidden = new vscode.EventEmitter<void>();
  readonly onDidChangeSelection = this.selections.event;
  readonly onDidTriggerButton = this.triggers.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidAccept = new vscode.EventEmitter<void>().event;
  readonly onDidChangeValue = new vscode.EventEmitter<string>().event;
  readonly onDidTriggerItemButton = new vscode.EventEmitter<never>().event;
  items: readonly vscode.QuickPickItem[] = [];
  selectedItems: readonly vscode.QuickPickItem[] = [];
  buttons: readonly vscode.QuickInputButton[] = [];
  value = "";

  tick(...labels: readonly string[]): void {
    this.selectedItems = this.items.filter(({ label }) => labels.includes(label));
    this.selections.fire(this.selectedItems);
  }

  press(tooltip: string): void {
    this.triggers.fire(this.buttons.find((button) => button.tooltip === tooltip) ?? assert.fail());
  }

  show(): void {}

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}

describe("a question with several answers", () => {
  it("keeps what is ticked while the whole question is read", async () => {
    const { createQuickPick } = vscode.window;
    let list = new TickedList();
    vscode.window.createQuickPick = (() => (list = new TickedList())) as unknown as typeof createQuickPick;
    const options = ["Oak", "Elm", "Ash"].map((label) => ({ label, description: "" }));
    const questions = [
      { question: "Which of them?\nAll?", header: "Pick", options, multiple: true, custom: true },
    ];
    const request = inWords({ type: "question", id: "que_1", sessionID: "ses_1", questions }, "/work");
    const child = { agent: "build", description: "Ship" } as Child;
    const read: string[] = [];
    const context = {
      known: {
        openRequests: () => [{ child, request }],
        onDidChangeRequests: () => ({ dispose: () => undefined }),
      },
      memory: new LaunchMemory(memento()),
      openText: async (_: string, text: string) => void read.push(text),
    } as unknown as FlowContext;
    try {
      const asked = answerRequest(context, { child, request });
      await until("the list", () => list.items.length === 4);
      const first = list;
      list.tick("Oak", "Ash");
      list.press("Read the Whole Question");
      await until("the list again", () => list !== first && list.items.length === 4);
      assert.deepEqual(read, ["Which of them?\nAll?"]);
      assert.deepEqual(
        list.selectedItems.map(({ label }) => label),
        ["Oak", "Ash"],
      );
      list.hide();
      await asked;
    } finally {
      vscode.window.createQuickPick = createQuickPick;
    }
  });
});

/** A list of which a row is selected as soon as there is one: the first with the text, otherwise the first. */
class TakingList {
  constructor(private readonly wanted?: string) {}

  private readonly accepted = new vscode.EventEmitter<void>();
  private readonly hidden = new vscode.EventEmitter<void>();
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidChangeSelection = new vscode.EventEmitter<never>().event;
  readonly onDidTriggerButton = new vscode.EventEmitter<vscode.QuickInputButton>().event;
  readonly onDidTriggerItemButton = new vscode.EventEmitter<never>().event;
  selectedItems: readonly vscode.QuickPickItem[] = [];

  set items(items: readonly vscode.QuickPickItem[]) {
    const found = items.filter(({ label }) => this.wanted !== undefined && label.includes(this.wanted));
    this.selectedItems = [...found, ...items].slice(0, 1);
    setImmediate(() => this.accepted.fire());
  }

  show(): void {}

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}

describe("a prompt that is being sent", () => {
  const { createInputBox, createQuickPick } = vscode.window;
  let boxes: WritableBox[];
  let memory: LaunchMemory;
  let take: () => void;
  let refuse: (error: Error) => void;

  /** What asking for a prompt needs; only the server's answers are fake. */
  const context = (): CommandContext => {
    const onItsWay = (): Promise<Task> =>
      new Promise((resolve, reject) => {
        take = () => resolve(record({}) as Task);
        refuse = reject;
      });
    const folder = {
      connector: { ensureConnected: async () => undefined },
      name: "api",
      uri: vscode.Uri.file("/work/api"),
      settings: { engine: () => ({ isolation: NO_ISOLATION }) },
      session: { ensure: async () => "ses_parent" },
      calls: { agents: async () => [{ name: "general" }], models: async () => [], launch: onItsWay },
    };
    return {
      folders: { opened: Promise.resolve(), all: [folder], current: folder, of: () => folder },
      memory,
      tasks: { resume: onItsWay },
      logger: { error: () => undefined },
      reveal: () => undefined,
      showLaunching: () => new vscode.Disposable(() => undefined),
    } as unknown as CommandContext;
  };
  const child = record({ status: "completed" }) as Task;
  const nothing = (): void => undefined;
  const shown = (count: number): Promise<WritableBox> => until(`box ${count}`, () => boxes[count - 1]);

  beforeEach(() => {
    boxes = [];
    memory = new LaunchMemory(memento());
    vscode.window.createInputBox = () => {
      const box = new WritableBox();
      boxes.push(box);
      return box as unknown as vscode.InputBox;
    };
    vscode.window.createQuickPick = (() => new TakingList()) as unknown as typeof createQuickPick;
  });

  afterEach(() => {
    vscode.window.createInputBox = createInputBox;
    vscode.window.createQuickPick = createQuickPick;
  });

  for (const [what, ask] of [
    ["launch", () => launchAsking(context())],
    ["follow-up", () => resumeAsking(context(), child)],
  ] as const)
    it(`is not offered for the next ${what}, and comes back if it is refused`, async () => {
      take = nothing;
      const first = ask();
      const box = await shown(1);
      box.write("Find the bug");
      box.accept();
      await until("the prompt on its way", () => take !== nothing);

      const sent = { take, refuse };
      const second = ask();
      assert.equal((await shown(2)).value, "");
      boxes[1]?.write("Write");
      boxes[1]?.hide();
      await second;

      sent.refuse(new Error("The server is gone."));
      const again = await shown(3);
      assert.equal(again.value, "Find the bug Write");
      again.write("Find the bug");
      again.accept();
      await until("the prompt on its way again", () => take !== sent.take);
      take();
      await first;
      assert.equal(boxes.length, 3);

      const third = ask();
      assert.equal((await shown(4)).value, "");
      boxes[3]?.hide();
      await third;
    });

  it("opens in an editor if it is refused and has several lines, which the box can't have", async () => {
    take = nothing;
    memory.keepPrompts(["Check it:\nall of it"]);
    vscode.window.createQuickPick = (() => new TakingList("Check it")) as unknown as typeof createQuickPick;
    const opened: string[] = [];
    const asking = launchAsking({
      ...context(),
      promptEditors: { open: async (_about: unknown, text: string) => void opened.push(text) },
    } as unknown as CommandContext);
    const box = await shown(1);
    box.write("Focus on login.");
    box.press("Templates and Recent Prompts");
    await until("the prompt on its way", () => take !== nothing);
    refuse(new Error("The server is gone."));
    await asking;
    assert.deepEqual(opened, ["Focus on login.\n\nCheck it:\nall of it"]);
    assert.equal(boxes.length, 1);
  });
});

describe("Always Allow for a permission", () => {
  const { createQuickPick } = vscode.window;
  const child = { agent: "build", description: "Ship" } as Child;

  afterEach(() => (vscode.window.createQuickPick = createQuickPick));

  for (const [what, always, offered] of [
    ["not offered without a pattern", [], []],
    [
      "offered with what its patterns cover",
      ["git push *"],
      ["git push *, for all agents in this folder, even where denied, until the server restarts"],
    ],
    [
      "offered for all requests of the kind if one pattern matches everything",
      ["ls", "*"],
      ["All of this kind, for all agents in this folder, even where denied, until the server restarts"],
    ],
  ] as const)
    it(`is ${what}`, async () => {
      let rows: readonly vscode.QuickPickItem[] = [];
      vscode.window.createQuickPick = (() =>
        Object.defineProperty(new TakingList(), "items", {
          set(items: readonly vscode.QuickPickItem[]) {
            rows = items;
            setImmediate(() => this.hide());
          },
        })) as unknown as typeof createQuickPick;
      const asked = { type: "permission", id: "per_1", sessionID: "ses_1", permission: "bash" } as const;
      const request = inWords({ ...asked, patterns: ["ls"], metadata: {}, always }, "/work");
      const open = { child, request };
      const context = {
        known: {
          openRequests: () => [open],
          onDidChangeRequests: () => ({ dispose: () => undefined }),
          explainRequest: async () => undefined,
        },
        memory: new LaunchMemory(memento()),
      } as unknown as FlowContext;
      assert.equal(await answerRequest(context, open), undefined);
      const found = rows.filter(({ label }) => label.includes("Always Allow"));
      assert.deepEqual(
        found.map(({ detail }) => detail),
        offered,
      );
    });
});

describe("a permission for a call of a tool", () => {
  const { showWarningMessage } = vscode.window;
  const ask = { type: "permission", id: "per_1", sessionID: "ses_1", always: [] } as const;

  afterEach(() => Object.assign(vscode.window, { showWarningMessage }));

  /** The buttons of the notification. */
  async function buttons(
    asked: Parameters<typeof inWords>[0],
    input?: Record<string, unknown>,
  ): Promise<string[]> {
    const open = {
      child: { agent: "build", description: "Ship" } as Child,
      request: inWords(asked, "/work"),
    };
    const context = {
      known: {
        openRequests: () => [open],
        explainRequest: () => Promise.resolve(inWords(asked, "/work", input && { tool: "some", input })),
      },
    } as unknown as FlowContext;
    const shown: string[] = [];
    vscode.window.showWarningMessage = async (_text: string, ...items: unknown[]) =>
      void shown.push(...(items as vscode.MessageItem[]).map(({ title }) => title));
    await showRequest(context, open);
    return shown;
  }

  it("can't be allowed from a notification that doesn't show the call's input", async () => {
    const asked = { ...ask, permission: "github_delete_file", patterns: ["*"], metadata: {} };
    assert.deepEqual(await buttons(asked, { path: "src/index.ts" }), ["Reject", "More…"]);
    assert.deepEqual(await buttons(asked, {}), ["Allow Once", "Reject", "More…"]);
    // Whose input isn't known yet.
    const call = { messageID: "msg_1", callID: "call_1" };
    assert.deepEqual(await buttons({ ...asked, call }), ["Reject", "More…"]);
    for (const all of [
      { permission: "bash", patterns: ["ls -l", "cat a"], metadata: { command: "ls -l && cat a" } },
      { permission: "read", patterns: ["/work/a.ts", "/work/b.ts"], metadata: {} },
      {
        permission: "external_directory",
        patterns: ["/etc/*"],
        metadata: { filepath: "/etc/hostname", parentDir: "/etc" },
      },
      { permission: "external_directory", patterns: ["/etc/*", "/tmp/*"], metadata: { command: "ls" } },
      { permission: "doom_loop", patterns: ["bash"], metadata: { tool: "bash", input: { command: "a b" } } },
    ])
      assert.deepEqual(await buttons({ ...ask, ...all }), ["Allow Once", "Reject", "More…"], all.permission);
  });
});

describe("a permission whose reason the server takes long to tell", () => {
  const { createQuickPick, showWarningMessage } = vscode.window;
  const asked = { type: "permission", id: "per_1", sessionID: "ses_1", permission: "bash" } as const;
  const open = {
    child: { agent: "build", description: "Ship" } as Child,
    request: inWords({ ...asked, patterns: ["ls"], metadata: {}, always: [] }, "/work"),
  };
  const context = {
    known: {
      openRequests: () => [open],
      onDidChangeRequests: () => ({ dispose: () => undefined }),
      explainRequest: () => new Promise(() => undefined),
    },
    memory: new LaunchMemory(memento()),
  } as unknown as FlowContext;

  afterEach(() => Object.assign(vscode.window, { createQuickPick, showWarningMessage }));

  it("is shown without it, in a notification and when it is answered", async function () {
    this.timeout(10_000);
    const shown: string[] = [];
    vscode.window.showWarningMessage = async (text: string) => void shown.push(text);
    await showRequest(context, open);
    vscode.window.createQuickPick = (() =>
      Object.defineProperty(new TakingList(), "items", {
        set(items: readonly vscode.QuickPickItem[]) {
          shown.push(...items.slice(0, 1).map(({ label }) => label));
          setImmediate(() => this.hide());
        },
      })) as unknown as typeof createQuickPick;
    assert.equal(await answerRequest(context, open), undefined);
    assert.deepEqual(shown, ['"Ship" (build) asks to run: ls', "$(terminal) ls"]);
  });
});
