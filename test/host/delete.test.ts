import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { Child } from "../../src/engine/subagent.ts";
import type { CommandContext, TaskContext } from "../../src/ui/commands/command.ts";
import { clear, deleteTask } from "../../src/ui/commands/clear-commands.ts";
import { rename } from "../../src/ui/commands/row-commands.ts";
import { ChildNode } from "../../src/ui/tree/items.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

describe("deleting a cleared task that holds work in a worktree", () => {
  const { showWarningMessage } = vscode.window;
  let asked: string[];
  /** The buttons that the user takes. */
  let taken: readonly string[];
  let task: Task;
  /** A subtask of it. */
  let below: Task | undefined;
  let done: string[];

  const folder = {
    connector: { ensureConnected: async () => undefined },
    calls: {
      worktreeChanges: async () => ({ files: [{ path: "notes.txt", added: 1, removed: 2 }] }),
      discardWorktree: async () => {
        done.push("discard");
        task = { ...task, worktree: { ...(task.worktree ?? assert.fail()), outcome: "discarded" } };
        return "ref";
      },
    },
  };
  const context = {
    known: {
      child: (id: string) => (id === task.id ? task : below),
      children: (id: string) => (below && id === task.id ? [below] : []),
      cleared: () => [],
      folderOf: () => folder,
    },
    folders: { of: () => folder, opened: Promise.resolve(), all: [folder], current: folder },
    tasks: {
      clear: async (_: string, how: object) => void done.push(`delete ${JSON.stringify(how)}`),
    },
  } as unknown as TaskContext;

  beforeEach(() => {
    [asked, taken, done, below] = [[], [], [], undefined];
    const worktree = { name: "port", directory: tempDir("worktree"), base: "0".repeat(40) };
    task = record({ description: "Port", status: "completed", clearedAt: 2, worktree }) as Task;
    vscode.window.showWarningMessage = async (text: string, options: unknown, ...buttons: unknown[]) => {
      asked.push(`${text} ${(options as vscode.MessageOptions).detail?.split("\n")[0] ?? ""}`);
      return buttons.find((one) => taken.includes(one as string)) as never;
    };
  });

  afterEach(() => Object.assign(vscode.window, { showWarningMessage }));

  const run = (): Promise<void> => deleteTask(context, task.id, undefined);
  const forGood =
    'Permanently delete "Port"? This also deletes the conversation and all subtasks from OpenCode, and can\'t be undone.';
  const work = 'Discard the work of "Port"? notes.txt +1 −2';

  it("does nothing if the user decides against it", async () => {
    await run();
    assert.deepEqual([asked, done], [[forGood], []]);
  });

  it("asks for the work by itself, without which nothing is deleted", async () => {
    taken = ["Delete"];
    await run();
    assert.deepEqual([asked, done], [[forGood, work], []]);
  });

  it("offers to undo what was discarded if the user decides against the work of the next task", async () => {
    const { showInformationMessage } = vscode.window;
    const told: string[] = [];
    vscode.window.showInformationMessage = async (text: string) => void told.push(text);
    taken = ["Delete", "Discard"];
    const tasks = new Map(["ses_1", "ses_2"].map((id) => [id, { ...task, id, description: id }]));
    const discardWorktree = async (id: string): Promise<string> => {
      const one = tasks.get(id) ?? assert.fail();
      tasks.set(id, { ...one, worktree: { ...(one.worktree ?? assert.fail()), outcome: "discarded" } });
      taken = ["Delete"];
      return "ref";
    };
    const there = { ...folder, calls: { ...folder.calls, discardWorktree } };
    const both = {
      ...context,
      known: { ...context.known, child: (id: string) => tasks.get(id), folderOf: () => there },
      folders: { ...context.folders, of: () => there, all: [there], current: there },
    } as unknown as TaskContext;
    try {
      const rows = [...tasks.keys()].map((id) => new ChildNode(id));
      await deleteTask(both, rows[0], rows);
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
    }
    assert.deepEqual(told, ['Discarded the work of "ses_1".']);
    assert.deepEqual(done, []);
  });

  it("offers to undo what was discarded if the task can't be deleted", async () => {
    const { showInformationMessage, showErrorMessage } = vscode.window;
    const told: string[] = [];
    const tell = async (text: string) => void told.push(text);
    Object.assign(vscode.window, { showInformationMessage: tell, showErrorMessage: tell });
    taken = ["Delete", "Discard"];
    const tasks = { clear: async () => Promise.reject(new Error("The server is gone.")) };
    const logger = { error: () => undefined };
    try {
      await deleteTask({ ...context, tasks, logger } as unknown as TaskContext, task.id, undefined);
    } finally {
      Object.assign(vscode.window, { showInformationMessage, showErrorMessage });
    }
    assert.deepEqual(done, ["discard"]);
    assert.ok(told.includes('Discarded the work of "Port".'), told.join());
  });

  it("asks for the work of its subtasks, too, without which nothing is deleted", async () => {
    below = { ...task, id: "ses_below", description: "Test the port", parentSessionID: task.id };
    task = { ...task, worktree: undefined };
    taken = ["Delete"];
    await run();
    assert.deepEqual([asked, done], [[forGood, work.replace("Port", "Test the port")], []]);
  });

  it("deletes a task whose worktree the user has removed", async () => {
    taken = ["Delete"];
    rmSync(task.worktree?.directory ?? assert.fail(), { recursive: true });
    await run();
    assert.deepEqual(asked, [forGood]);
    assert.deepEqual(done, ['delete {"cancelRunning":true,"deleteSession":true}']);
  });

  it("doesn't delete one that was put back into the list while the user was asked", async () => {
    const shown: string[] = [];
    vscode.window.showWarningMessage = async (text: string) => {
      shown.push(text);
      task = { ...task, clearedAt: undefined };
      return "Delete" as never;
    };
    const logger = { error: () => undefined };
    await deleteTask({ ...context, logger } as unknown as TaskContext, task.id, undefined);
    await until("the reason", () => shown.length > 1);
    assert.deepEqual(shown, [
      'Permanently delete "Port"?',
      `"Port" is in the list again, so it wasn't deleted.`,
    ]);
    assert.deepEqual(done, []);
  });

  it("discards the work, then deletes the task", async () => {
    taken = ["Delete", "Discard"];
    await run();
    assert.deepEqual(asked, [forGood, work]);
    assert.deepEqual(done, ["discard", 'delete {"cancelRunning":true,"deleteSession":true}']);
  });
});

describe("clearing several rows", () => {
  it("leaves out those that are cleared already, also when it is undone", async () => {
    const { showInformationMessage } = vscode.window;
    const tasks = new Map(
      [{}, { clearedAt: 2 }].map((given, index) => {
        const id = `ses_${index}`;
        return [id, record({ id, status: "completed", ...given }) as Task] as const;
      }),
    );
    const done: string[] = [];
    const context = {
      known: { child: (id: string) => tasks.get(id), children: () => [] },
      tasks: {
        clear: async (id: string) => {
          done.push(`clear ${id}`);
          return tasks.get(id);
        },
        restore: async (id: string) => void done.push(`restore ${id}`),
      },
    } as unknown as TaskContext;
    vscode.window.showInformationMessage = (async (_: string, undo: string) => undo) as never;
    try {
      const rows = [...tasks.keys()].map((id) => new ChildNode(id));
      await clear(context, rows[0], rows);
      await until("the undoing", () => done.length > 1);
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
    }
    assert.deepEqual(done, ["clear ses_0", "restore ses_0"]);
  });
});

describe("clearing running tasks", () => {
  const { showWarningMessage, showInformationMessage } = vscode.window;
  afterEach(() => Object.assign(vscode.window, { showWarningMessage, showInformationMessage }));

  it("asks again if another one was resumed while the user was asked", async () => {
    const tasks = new Map(
      (["running", "completed"] as const).map((status, index) => {
        const id = `ses_${index}`;
        return [id, record({ id, status }) as Task] as const;
      }),
    );
    const cleared: string[] = [];
    const context = {
      known: { child: (id: string) => tasks.get(id), children: () => [] },
      tasks: { clear: async (id: string) => void cleared.push(id) },
    } as unknown as TaskContext;
    const asked: string[] = [];
    vscode.window.showWarningMessage = async (text: string) => {
      asked.push(text);
      const other = tasks.get("ses_1") ?? assert.fail();
      tasks.set("ses_1", { ...other, status: "resumed" });
      return asked.length === 1 ? "Cancel and Clear" : undefined;
    };
    const rows = [...tasks.keys()].map((id) => new ChildNode(id));
    await clear(context, rows[0], rows);
    assert.deepEqual(asked, [
      "1 task is still running. Cancel it and clear it from the list?",
      "2 tasks are still running. Cancel them and clear them from the list?",
    ]);
    assert.deepEqual(cleared, []);
  });
});

describe("renaming", () => {
  it("takes the task in front of the user; with the view's key, that of the selected row", async () => {
    const { showInputBox } = vscode.window;
    const renamed: string[] = [];
    const known = (id: string): Child => record({ id, description: id }) as Task;
    const context = {
      known: { get: known, child: known },
      frontID: () => "ses_shown",
      clickedID: async () => "ses_selected",
      tasks: { rename: async (id: string) => void renamed.push(id) },
    } as unknown as CommandContext;
    vscode.window.showInputBox = async () => "Another name";
    const { keybindings } = (
      vscode.extensions.getExtension("async-agents.opencode-async-agents") ?? assert.fail()
    ).packageJSON.contributes as { keybindings: readonly { command: string; args?: unknown }[] };
    const key = keybindings.find(({ command }) => command === "asyncagents.rename");
    try {
      await rename(context, undefined);
      await rename(context, key?.args);
      await rename(context, new ChildNode("ses_clicked"));
    } finally {
      Object.assign(vscode.window, { showInputBox });
    }
    assert.deepEqual(renamed, ["ses_shown", "ses_selected", "ses_clicked"]);
  });
});
