import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { FileChoice } from "../../src/engine/bring-back.ts";
import { Refusal } from "../../src/engine/errors.ts";
import type { TaskWorktree } from "../../src/engine/task.ts";
import { FolderWorktrees } from "../../src/git/folder-worktrees.ts";
import type { Folder } from "../../src/ui/folders/folders.ts";
import { planBringBack, write } from "../../src/ui/worktrees/bring-back.ts";
import type { IsolatedTask } from "../../src/ui/worktrees/isolated-task.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";
import { silentLogger } from "../unit/rpc/fake-host.ts";

describe("bringing work back in the extension host", () => {
  let repository: TestRepository;
  let worktree: TaskWorktree;
  let folder: Folder;
  let task: IsolatedTask;

  const at = (path: string): string => join(repository.directory, path);
  const read = (path: string): string => readFileSync(at(path), "utf8");
  const change = (path: string, content: string | Buffer): void =>
    writeFileSync(join(worktree.directory, path), content);
  const state = (): readonly string[] => [
    repository.git("status", "--porcelain=v2"),
    repository.git("ls-files", "--stage"),
    repository.git("stash", "list"),
    ...["open.txt", "closed.txt", "staged.txt", "saved.txt"].map(read),
  ];
  const all = (paths: readonly string[]): readonly FileChoice[] =>
    paths.map((path) => ({ path, take: "merged" }));

  /** Opens a file in an editor, and types at its start without saving. */
  async function typeInto(path: string, text: string): Promise<vscode.TextDocument> {
    const document = await vscode.workspace.openTextDocument(at(path));
    const editor = await vscode.window.showTextDocument(document);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), text));
    assert.ok(document.isDirty);
    return document;
  }

  beforeEach(async () => {
    const lines = "1\n2\n3\n4\n5\n";
    repository = makeRepository({
      "open.txt": lines,
      "closed.txt": lines,
      "staged.txt": lines,
      "smiles.txt": "1\n2\n3\n\u{1f600}\u{1f600}\n",
      "saved.txt": lines.replaceAll("\n", "\r\n"),
    });
    const worktrees = new FolderWorktrees(repository.directory, () => process.env, silentLogger);
    worktree = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    task = { ...record({ worktree }), worktree } as IsolatedTask;
    folder = {
      uri: vscode.Uri.file(repository.directory),
      calls: {
        planBringBack: (_id: string, unsaved: Readonly<Record<string, string>>) =>
          worktrees.planBringBack(worktree, new Map(Object.entries(unsaved))),
        bringBack: (_id: string, ...rest: Parameters<FolderWorktrees["bringBack"]>) =>
          worktrees.bringBack(...rest),
        undoBringBack: (_id: string, ...rest: Parameters<FolderWorktrees["undoBringBack"]>) =>
          worktrees.undoBringBack(...rest),
      },
    } as unknown as Folder;
  });
  afterEach(async () => {
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  for (const [what, disturb] of [
    ["a file", () => repository.write("closed.txt", "later\n")],
    ["the text of an editor", () => typeInto("open.txt", "later\n")],
  ] as const)
    it(`restores nothing, and says so, if ${what} has changed since it was brought back`, async () => {
      const open = await typeInto("open.txt", "typed\n");
      for (const path of ["open.txt", "closed.txt"]) change(path, "1\n2\n3\n4\nFIVE\n");
      const planned = await planBringBack(task, folder);
      const undo = await write(planned, all(["open.txt", "closed.txt"]));
      await disturb();
      const before = [...state(), open.getText()];
      await assert.rejects(undo(), /\.txt has changed in the meantime, so nothing was restored\.$/);
      assert.deepEqual([...state(), open.getText()], before);
    });

  it("restores the editors too if only the worktree can't be made again", async () => {
    const open = await typeInto("open.txt", "typed\n");
    const before = open.getText();
    change("open.txt", "1\n2\n3\n4\nFIVE\n");
    const undo = await write(await planBringBack(task, folder), all(["open.txt"]));
    const failed = new Refusal("partly-done", "The folder was restored.");
    Object.assign(folder.calls, { undoBringBack: () => Promise.reject(failed) });
    await assert.rejects(undo(), failed);
    assert.equal(open.getText(), before);
  });

  it("[ISO-4] merges an unsaved text in its editor, leaves all else as it is, and undoes everything", async () => {
    repository.write("staged.txt", "ONE\n2\n3\n4\n5\n");
    repository.git("add", "staged.txt");
    repository.write("closed.txt", "ONE\n2\n3\n4\n5\n");
    repository.write("untracked.txt", "untracked\n");
    const open = await typeInto("open.txt", "typed\n");
    const before = state();
    for (const path of ["open.txt", "closed.txt"]) change(path, "1\n2\n3\n4\nFIVE\n");
    change("saved.txt", "1\r\n2\r\n3\r\n4\r\nFIVE\r\n");
    change("image.bin", Buffer.from([0, 255, 1, 254]));
    const planned = await planBringBack(task, folder);
    const paths = planned.plan.files.map(({ path }) => path);
    assert.deepEqual(paths, ["closed.txt", "image.bin", "open.txt", "saved.txt"]);
    const undo = await write(planned, all(paths));
    assert.equal(open.getText(), "typed\n1\n2\n3\n4\nFIVE\n");
    assert.ok(open.isDirty);
    assert.equal(read("open.txt"), "1\n2\n3\n4\n5\n");
    assert.equal(read("closed.txt"), "ONE\n2\n3\n4\nFIVE\n");
    assert.equal(read("saved.txt"), "1\r\n2\r\n3\r\n4\r\nFIVE\r\n");
    assert.equal(read("staged.txt"), "ONE\n2\n3\n4\n5\n");
    assert.deepEqual([...readFileSync(at("image.bin"))], [0, 255, 1, 254]);
    assert.equal(repository.git("ls-files", "--stage"), before[1]);
    await undo();
    assert.deepEqual(state(), before);
    assert.equal(open.getText(), "typed\n1\n2\n3\n4\n5\n");
    assert.ok(open.isDirty);
    assert.ok(!existsSync(at("image.bin")));
  });

  it("replaces whole characters in an editor, also those that have half of their code in common", async () => {
    const open = await typeInto("smiles.txt", "typed\n");
    // The first ones begin with the same surrogate, the last ones end with the same.
    change("smiles.txt", "1\n2\n3\n\u{1f603}\u{1fa00}\n");
    const undo = await write(await planBringBack(task, folder), all(["smiles.txt"]));
    assert.equal(open.getText(), "typed\n1\n2\n3\n\u{1f603}\u{1fa00}\n");
    await undo();
    assert.equal(open.getText(), "typed\n1\n2\n3\n\u{1f600}\u{1f600}\n");
  });

  it("shows the new text in an editor without unsaved text, and the old one after Undo", async () => {
    const document = await vscode.workspace.openTextDocument(at("saved.txt"));
    await vscode.window.showTextDocument(document);
    const before = document.getText();
    change("saved.txt", "1\r\n2\r\n3\r\n4\r\nFIVE\r\n");
    const undo = await write(await planBringBack(task, folder), all(["saved.txt"]));
    await until("the new text", () => document.getText() === before.replace("5", "FIVE"));
    assert.ok(!document.isDirty);
    await undo();
    await until("the old text", () => document.getText() === before);
    assert.ok(!document.isDirty);
  });

  it("writes nothing if an unsaved text has changed since the plan was made", async () => {
    const open = await typeInto("open.txt", "typed\n");
    change("open.txt", "1\n2\n3\n4\nFIVE\n");
    change("new.txt", "new\n");
    const planned = await planBringBack(task, folder);
    const edit = new vscode.WorkspaceEdit();
    edit.insert(open.uri, new vscode.Position(0, 0), "more ");
    await vscode.workspace.applyEdit(edit);
    const choices = all(planned.plan.files.map(({ path }) => path));
    await assert.rejects(write(planned, choices), /open\.txt has changed in the meantime/);
    assert.equal(open.getText(), "more typed\n1\n2\n3\n4\n5\n");
    assert.ok(!existsSync(at("new.txt")));
  });

  it("writes nothing if a file with unsaved text would be deleted", async () => {
    await typeInto("open.txt", "typed\n");
    repository.write("untracked.txt", "untracked\n");
    change("new.txt", "new\n");
    await vscode.workspace.fs.delete(vscode.Uri.file(join(worktree.directory, "open.txt")));
    const planned = await planBringBack(task, folder);
    const conflict = planned.plan.files.find(({ path }) => path === "open.txt");
    assert.equal(conflict?.conflict, "deleted-by-agent");
    const choices: readonly FileChoice[] = [
      { path: "new.txt", take: "merged" },
      { path: "open.txt", take: "agents" },
    ];
    await assert.rejects(write(planned, choices), /has unsaved changes in an editor/);
    assert.ok(existsSync(at("open.txt")));
    assert.ok(!existsSync(at("new.txt")));
  });
});
