import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { FileContent, SessionChanges } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { CHANGE_SCHEME, resourcePath, sideOf, sideText, sideUri } from "../../src/ui/changes/change-side.ts";
import { AllChangesNode, ChangeNode, showChanges } from "../../src/ui/changes/changes-view.ts";
import type { ReviewContext } from "../../src/ui/commands/command.ts";
import { acceptChange, compareChanges } from "../../src/ui/commands/review.ts";
import { ChildNode } from "../../src/ui/tree/items.ts";
import { script } from "../support/script.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
const task: Task = { ...record({ description: "Change much" }), cost: 0, tokens: NO_TOKENS };
const text = (content: string): FileContent => ({ kind: "text", text: content });
const absent: FileContent = { kind: "absent" };

describe("changes in the extension host", () => {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const at = (name: string): string => join(folder, name);
  let shown: SessionChanges["files"] = [];
  let provider: vscode.Disposable;
  const show = (files: SessionChanges["files"], hasSnapshots = true) => {
    shown = files;
    return showChanges(task, { files, hasSnapshots });
  };
  const change = (name: string, before: FileContent, after: FileContent) => ({
    path: at(name),
    before,
    after,
    isDoubtful: false,
    isMixed: false,
    mixedWith: [],
    workedOnBy: [],
  });
  const tabs = (): readonly vscode.Tab[] => vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const tab = (label: RegExp): Promise<vscode.Tab> =>
    until(`the tab ${String(label)}`, () => tabs().find((one) => label.test(one.label)));
  /** The texts of both sides of the diff editor with this title. */
  async function sides(label: RegExp): Promise<readonly string[]> {
    const { input } = await tab(label);
    assert.ok(input instanceof vscode.TabInputTextDiff);
    const both = await Promise.all(
      [input.original, input.modified].map((uri) => vscode.workspace.openTextDocument(uri)),
    );
    return both.map((document) => document.getText());
  }

  before(async () => {
    await vscode.extensions.getExtension("async-agents.opencode-async-agents")?.activate();
    // The newest provider is asked first, so before the extension's own.
    provider = vscode.workspace.registerTextDocumentContentProvider(CHANGE_SCHEME, {
      provideTextDocumentContent: (uri) => {
        const side = sideOf(uri);
        const change = shown.find(({ path }) => path === side?.path);
        return side && change && sideText(change, side.side);
      },
    });
  });
  afterEach(() => vscode.commands.executeCommand("workbench.action.closeAllEditors"));
  after(() => provider.dispose());

  it("opens 300 files at once", async () => {
    const names = Array.from({ length: 300 }, (_, index) => `many/${index}.ts`);
    await show(names.map((name) => change(name, text(`${name} before\n`), text(`${name} after\n`))));
    await tab(/^Changes: Change much \(300 files\)$/);
    const isOpen = (name: string, content: string): boolean =>
      vscode.workspace.textDocuments.some(
        (document) => document.uri.path === `/many/${name}.ts` && document.getText() === content,
      );
    await until("the texts of the first and of the last file", () =>
      ["0", "299"].every(
        (name) => isOpen(name, `many/${name}.ts before\n`) && isOpen(name, `many/${name}.ts after\n`),
      ),
    );
  });

  it("shows the file on disk if it is still as the task left it, else the task's text", async () => {
    writeFileSync(at("same.txt"), "after\n");
    await show([change("same.txt", text("before\n"), text("after\n"))]);
    const { input } = await tab(/^same.txt/);
    assert.ok(input instanceof vscode.TabInputTextDiff);
    assert.equal(input.modified.toString(), vscode.Uri.file(at("same.txt")).toString());
    assert.deepEqual(await sides(/^same.txt/), ["before\n", "after\n"]);
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    writeFileSync(at("same.txt"), "changed since\n");
    await show([change("same.txt", text("before\n"), text("after\n"))]);
    assert.deepEqual(await sides(/^same.txt/), ["before\n", "after\n"]);
  });

  it("opens no file outside the workspace", async () => {
    await show([change("../outside.txt", absent, text("x\n"))]);
    const { input } = await tab(/^outside.txt/);
    assert.ok(input instanceof vscode.TabInputTextDiff);
    assert.equal(input.modified.scheme, CHANGE_SCHEME);
  });

  it("says why a content is not shown", async () => {
    await show([change("picture.png", { kind: "binary" }, { kind: "binary" })]);
    assert.deepEqual(await sides(/^picture.png/), [
      "Before: a binary file, not shown.",
      "After: a binary file, not shown.",
    ]);
    const big = "x".repeat(5_000_000);
    writeFileSync(at("big.txt"), big);
    await show([change("big.txt", text("small\n"), text(big))]);
    assert.deepEqual(await sides(/^big.txt/), ["small\n", "After: larger than 2 MB, not shown."]);
    await show([change("vanished.txt", { kind: "unknown" }, { kind: "unknown" })]);
    assert.deepEqual(await sides(/^vanished.txt/), [
      "Before: not known because OpenCode took no snapshot of it.",
      "After: not known because OpenCode took no snapshot of it.",
    ]);
  });

  it("says in the title when only the changes by edit tools are known", async () => {
    await show(
      [change("edited.txt", { kind: "excerpt", text: "a\n" }, { kind: "excerpt", text: "b\n" })],
      false,
    );
    assert.deepEqual(await sides(/^edited.txt \(Changes by edit tools: Change much\)$/), ["a\n", "b\n"]);
  });

  it("shows a task's changes by a command, and returns them to a program or refuses with a sentence", async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>("async-agents.opencode-async-agents");
    const api = await (extension ?? assert.fail()).activate();
    await api.ready();
    const launched = await api.tasks.launch({
      prompt: script([
        { tools: [{ name: "write", args: { filePath: at("by-task.txt"), content: "written\n" } }] },
        { text: "Done." },
      ]),
    });
    await api.tasks.wait(launched.id, { timeoutMs: 30_000 });
    await vscode.commands.executeCommand("asyncagents.showChanges", launched.id.slice(-6));
    const changes = await api.changes.read(launched.id.slice(-6));
    assert.deepEqual(
      changes.files.map(({ before, after }) => [before, after]),
      [[absent, text("written\n")]],
    );
    assert.deepEqual(await sides(/^by-task.txt/), ["", "written\n"]);
    await assert.rejects(api.changes.read("zzzzzz"), /Task zzzzzz doesn't exist/);
  });

  it("says that a task changed no files", async () => {
    const { showInformationMessage } = vscode.window;
    const told: string[] = [];
    const ended: Task = { ...task, status: "completed" };
    Object.assign(vscode.window, { showInformationMessage: async (text: string) => void told.push(text) });
    try {
      await show([]);
      await showChanges(ended, { files: [], hasSnapshots: true });
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
    }
    assert.deepEqual(told, [
      '"Change much" hasn\'t changed any files yet.',
      '"Change much" didn\'t change any files.',
    ]);
  });

  it("reads a text again after the list was closed, and says when there is none", async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>("async-agents.opencode-async-agents");
    const api = await (extension ?? assert.fail()).activate();
    await api.ready();
    const { id } = await api.tasks.launch({
      prompt: script([
        { tools: [{ name: "write", args: { filePath: at("again.txt"), content: "written\n" } }] },
        { text: "Done." },
      ]),
    });
    await api.tasks.wait(id, { timeoutMs: 30_000 });
    await vscode.commands.executeCommand("asyncagents.showChanges", id);
    await tab(/^again.txt/);
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.commands.executeCommand("asyncagents.closeChanges");
    const textOf = async (taskID: string, name: string): Promise<string> => {
      const uri = sideUri(vscode.Uri.file(`/${name}`), { taskID, path: at(name), side: "after" });
      return (await vscode.workspace.openTextDocument(uri)).getText();
    };
    assert.equal(await textOf(id, "again.txt"), "written\n");
    assert.match(await textOf(id, "other.txt"), /no longer has a change/);
    assert.match(await textOf("ses_none", "again.txt"), /Task ses_none doesn't exist/);
  });

  it("knows a document by the path that the editor's conditions use, also on Windows", () => {
    const side = { scheme: CHANGE_SCHEME, path: "/src/a.ts", fsPath: "\\src\\a.ts" };
    assert.equal(resourcePath(side), "/src/a.ts");
    const real = { scheme: "file", path: "/c:/src/a.ts", fsPath: "c:\\src\\a.ts" };
    assert.equal(resourcePath(real), "c:\\src\\a.ts");
  });

  it("compares no files of different folders that have the same path, nor what one task did twice", async () => {
    const { asRelativePath, getWorkspaceFolder } = vscode.workspace;
    const { showInformationMessage } = vscode.window;
    const told: string[] = [];
    const tasks = ["ses_api", "ses_web"].map((id): Task => ({ ...task, id, status: "completed" }));
    const changed = (path: string) => ({ ...change("", absent, text("{}\n")), path });
    const context = {
      known: { child: (id: string) => tasks.find((each) => each.id === id) },
      review: async () => ({
        read: async ({ id }: Task) => ({
          files:
            id === "ses_api"
              ? [changed("/api/package.json")]
              : ["/web/package.json", "/more/package.json"].map(changed),
          hasSnapshots: true,
        }),
      }),
    } as unknown as ReviewContext;
    Object.assign(vscode.window, {
      showInformationMessage: async (message: string) => void told.push(message),
    });
    Object.assign(vscode.workspace, {
      asRelativePath: () => "package.json",
      getWorkspaceFolder: ({ path }: vscode.Uri) => ({ uri: vscode.Uri.file(path.split("/")[1] ?? "") }),
    });
    try {
      const rows = tasks.map(({ id }) => new ChildNode(id));
      await compareChanges(context, rows[0], rows);
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
      Object.assign(vscode.workspace, { asRelativePath, getWorkspaceFolder });
    }
    assert.deepEqual(told, ["No file was changed by more than one of these tasks."]);
  });

  it("accepts all changes as they are listed: what has changed since stays to be reviewed", async () => {
    const ended: Task = { ...task, status: "completed" };
    const [kept, old] = [change("kept.txt", absent, text("a\n")), change("again.txt", absent, text("b\n"))];
    const now = [kept, { ...old, after: text("c\n") }, change("new.txt", absent, text("d\n"))];
    let accepted: string[] = [];
    let listed = [kept, old];
    const told: string[] = [];
    const review = {
      listedTaskID: ended.id,
      get rows() {
        return listed.map((one) => new ChangeNode(ended.id, one, "Changes"));
      },
      read: async () => ({ files: now, hasSnapshots: true }),
      pending: async () => now.map((one) => ({ change: one })),
      accept: (_: string, placed: readonly { readonly change: { readonly path: string } }[]) =>
        accepted.push(...placed.map((one) => one.change.path)),
      update: async () => undefined,
    };
    const there = { connector: { ensureConnected: async () => undefined } };
    const context = {
      known: { child: () => ended, children: () => [], folderOf: () => there },
      folders: { of: () => there, opened: Promise.resolve(), all: [there], current: there },
      review: async () => review,
    } as unknown as ReviewContext;
    const { showInformationMessage } = vscode.window;
    vscode.window.showInformationMessage = async (message: string) => void told.push(message);
    try {
      await acceptChange(context, new AllChangesNode(ended.id));
      assert.deepEqual(accepted, [kept.path]);
      [accepted, listed] = [[], [old]];
      await acceptChange(context, new AllChangesNode(ended.id));
      assert.deepEqual(accepted, []);
      await until("the reason", () =>
        told.some((one) => /^These changes have changed since they were listed/.test(one)),
      );
      // Nothing is listed any more.
      listed = [];
      await acceptChange(context, new AllChangesNode(ended.id));
      assert.equal(accepted.length, 3);
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
    }
  });

  it("compares nothing, and says nothing, if reading the changes to compare is cancelled", async () => {
    const { showInformationMessage, withProgress } = vscode.window;
    const told: string[] = [];
    const read: string[] = [];
    const cancelled = new vscode.CancellationTokenSource();
    const tasks = ["ses_1", "ses_2"].map((id): Task => ({ ...task, id, status: "completed" }));
    const context = {
      known: { child: (id: string) => tasks.find((each) => each.id === id) },
      review: async () => ({
        read: ({ id }: Task) => {
          read.push(id);
          return new Promise(() => undefined);
        },
      }),
    } as unknown as ReviewContext;
    Object.assign(vscode.window, {
      showInformationMessage: async (text: string) => void told.push(text),
      withProgress: (_: unknown, work: Parameters<typeof withProgress>[1]) => {
        const done = work({ report: () => undefined }, cancelled.token);
        cancelled.cancel();
        return done;
      },
    });
    try {
      const rows = tasks.map(({ id }) => new ChildNode(id));
      await compareChanges(context, rows[0], rows);
    } finally {
      Object.assign(vscode.window, { showInformationMessage, withProgress });
    }
    assert.deepEqual([told, read], [[], ["ses_1"]]);
  });
});
