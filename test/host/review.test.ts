import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import { english, sentence } from "../../src/engine/sentence.ts";
import type { FileChange, FileContent } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { planOf } from "../../src/daemon/revert-plan.ts";
import { type PlanRevert, revertFiles, undoRevert } from "../../src/ui/changes/revert-files.ts";
import { Review, type ReviewParts, withText } from "../../src/ui/changes/review.ts";
import { registerCommands, type Command, type CommandContext } from "../../src/ui/commands/command.ts";
import { script } from "../support/script.ts";
import { strictLogger } from "../bench/support/memory-engine.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";
import { MemoryMemento } from "./memory-parts.ts";

const text = (content: string): FileContent => ({ kind: "text", text: content });
const absent: FileContent = { kind: "absent" };
/** Plans as the daemon does. */
const plan: PlanRevert = async (change, present) => {
  const planned = planOf(change, withText(present), false);
  return typeof planned === "string"
    ? { kind: "refused", reason: planned, why: sentence("{0}: refused", change.path) }
    : planned;
};

describe("reviewing changes in the extension host", () => {
  const folder = join(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "", "review");
  const at = (name: string): string => join(folder, name);
  const change = (path: string, before: FileContent, after: FileContent): FileChange => ({
    path,
    before,
    after,
    isDoubtful: false,
    isMixed: false,
    mixedWith: [],
    workedOnBy: [],
  });
  /** Why the file was left alone; undefined: it was reverted. */
  const refusal = async (one: FileChange): Promise<string | undefined> =>
    (await revertFiles([one], plan)).refused[0]?.reason;

  before(() => void mkdirSync(folder));

  it("restores files byte for byte, and undoes that", async () => {
    const formatted = "\u{feff}one  \r\ntwo\n\tthree";
    writeFileSync(at("edited.txt"), "after\n");
    writeFileSync(at("created.txt"), "new\n");
    const { reverted, refused } = await revertFiles(
      [
        change(at("edited.txt"), text(formatted), text("after\n")),
        change(at("created.txt"), absent, text("new\n")),
        change(at("deep/er/deleted.txt"), text("gone\n"), absent),
      ],
      plan,
    );
    assert.deepEqual(refused, []);
    assert.equal(readFileSync(at("edited.txt"), "utf8"), formatted);
    assert.ok(!existsSync(at("created.txt")));
    assert.equal(readFileSync(at("deep/er/deleted.txt"), "utf8"), "gone\n");
    assert.deepEqual(await undoRevert(reverted), []);
    assert.equal(readFileSync(at("edited.txt"), "utf8"), "after\n");
    assert.equal(readFileSync(at("created.txt"), "utf8"), "new\n");
    assert.ok(!existsSync(at("deep/er/deleted.txt")));
  });

  it("keeps the mode of an edited file, restores that of a deleted one, and undoes that of a created one", async () => {
    for (const name of ["edited.sh", "created.sh"]) writeFileSync(at(name), "after\n", { mode: 0o755 });
    const { reverted } = await revertFiles(
      [
        change(at("edited.sh"), text("before\n"), text("after\n")),
        change(at("created.sh"), absent, text("after\n")),
        change(at("deleted.sh"), text("gone\n"), absent),
      ],
      async (...asked) => {
        const planned = await plan(...asked);
        return asked[0].path === at("deleted.sh") ? { ...planned, mode: 0o755 } : planned;
      },
    );
    const modeOf = (name: string): number => statSync(at(name)).mode & 0o777;
    assert.deepEqual(["edited.sh", "deleted.sh"].map(modeOf), [0o755, 0o755]);
    assert.deepEqual(await undoRevert(reverted), []);
    assert.deepEqual(["edited.sh", "created.sh"].map(modeOf), [0o755, 0o755]);
  });

  it("keeps later changes in other lines", async () => {
    writeFileSync(at("merged.txt"), "1\nTWO\n3\n4\nFIVE\n");
    await revertFiles([change(at("merged.txt"), text("1\n2\n3\n4\n5\n"), text("1\nTWO\n3\n4\n5\n"))], plan);
    assert.equal(readFileSync(at("merged.txt"), "utf8"), "1\n2\n3\n4\nFIVE\n");
  });

  it("leaves a file alone that changes while the revert is planned", async () => {
    const path = at("raced.txt");
    writeFileSync(path, "1\nTWO\n3\nFOUR\n");
    const { refused } = await revertFiles(
      [change(path, text("1\n2\n3\n4\n"), text("1\nTWO\n3\n4\n"))],
      async (...asked) => {
        writeFileSync(path, "1\nTWO\n3\nFIVE\n");
        return plan(...asked);
      },
    );
    assert.deepEqual(
      refused.map(({ reason, why }) => [reason, english(why)]),
      [
        [
          "changed-since",
          "review/raced.txt: has since changed in the same places. Compare and revert by hand.",
        ],
      ],
    );
    assert.equal(readFileSync(path, "utf8"), "1\nTWO\n3\nFIVE\n");
  });

  it("does not undo over a later change", async () => {
    writeFileSync(at("undo.txt"), "after\n");
    const { reverted } = await revertFiles([change(at("undo.txt"), text("before\n"), text("after\n"))], plan);
    writeFileSync(at("undo.txt"), "a person's\n");
    assert.deepEqual(await undoRevert(reverted), [at("undo.txt")]);
    assert.equal(readFileSync(at("undo.txt"), "utf8"), "a person's\n");
  });

  it("leaves files outside the workspace alone, also behind links", async () => {
    const outside = tempDir("outside");
    writeFileSync(join(outside, "file.txt"), "after\n");
    symlinkSync(outside, at("linked"));
    symlinkSync(join(outside, "file.txt"), at("link.txt"));
    for (const path of [join(outside, "file.txt"), at("linked/file.txt"), at("link.txt")])
      assert.equal(await refusal(change(path, text("before\n"), text("after\n"))), "outside", path);
    assert.equal(await refusal(change(at("linked/new/deleted.txt"), text("gone\n"), absent)), "outside");
    assert.equal(readFileSync(join(outside, "file.txt"), "utf8"), "after\n");
    assert.ok(!existsSync(join(outside, "new")));
  });

  it("leaves a file with unsaved changes alone", async () => {
    writeFileSync(at("open.txt"), "after\n");
    const document = await vscode.workspace.openTextDocument(at("open.txt"));
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), "typed ");
    await vscode.workspace.applyEdit(edit);
    const one = change(at("open.txt"), text("before\n"), text("after\n"));
    assert.equal(await refusal(one), "unsaved");
    assert.equal(document.getText(), "typed after\n");
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    assert.equal(await refusal(one), undefined);
    assert.equal(readFileSync(at("open.txt"), "utf8"), "before\n");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("leaves a file alone whose unsaved changes are in an editor that opened it through a link", async () => {
    writeFileSync(at("through.txt"), "after\n");
    symlinkSync(folder, at("opened"));
    const document = await vscode.workspace.openTextDocument(at("opened/through.txt"));
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), "typed ");
    await vscode.workspace.applyEdit(edit);
    assert.equal(await refusal(change(at("through.txt"), text("before\n"), text("after\n"))), "unsaved");
    assert.equal(readFileSync(at("through.txt"), "utf8"), "after\n");
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("reads the listed changes again when one of their files is saved, also by an editor that opened it through a link", async () => {
    const { createTreeView } = vscode.window;
    writeFileSync(at("saved.txt"), "after\n");
    symlinkSync(folder, at("way-in"));
    const changes = {
      files: [change(at("saved.txt"), text("before\n"), text("after\n"))],
      hasSnapshots: true,
    };
    let reads = 0;
    const owner = {
      connector: { ensureConnected: async () => undefined },
      calls: {
        planRevert: async () => ({ kind: "refused" }),
        changes: async () => {
          reads++;
          return changes;
        },
      },
    };
    const never = () => ({ dispose: () => undefined });
    vscode.window.createTreeView = (() => never()) as unknown as typeof createTreeView;
    const removals = new vscode.EventEmitter<void>();
    const task = record({ status: "completed" }) as Task;
    let isThere = true;
    const review = new Review({
      known: {
        child: () => (isThere ? task : undefined),
        onDidChange: never,
        onDidChangeSubagent: never,
      },
      folders: {
        opened: Promise.resolve(),
        all: [owner],
        current: owner,
        of: () => owner,
        follow: never,
        onDidChange: removals.event,
      },
      state: new MemoryMemento(),
      keys: { set: () => undefined },
      textChanges: new vscode.EventEmitter(),
      logger: strictLogger,
    } as unknown as ReviewParts);
    vscode.window.createTreeView = createTreeView;
    try {
      await review.show(task, changes);
      for (const [index, name] of ["saved.txt", "way-in/saved.txt"].entries()) {
        const document = await vscode.workspace.openTextDocument(at(name));
        const edit = new vscode.WorkspaceEdit();
        edit.insert(document.uri, new vscode.Position(0, 0), "typed ");
        await vscode.workspace.applyEdit(edit);
        await document.save();
        await until(`the reading after the save of ${name}`, () => reads === index + 1, 5_000);
      }
      removals.fire();
      assert.equal(review.listedTaskID, task.id);
      // The folder of the task is removed.
      isThere = false;
      removals.fire();
      assert.equal(review.listedTaskID, undefined);
    } finally {
      review.dispose();
      await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    }
  });

  it("says which file could not be written, and reverts the others", async () => {
    for (const name of ["no-folder", "free.txt"]) writeFileSync(at(name), "after\n");
    const { reverted, refused } = await revertFiles(
      [
        change(at("no-folder/deleted.txt"), text("gone\n"), absent),
        change(at("free.txt"), text("before\n"), text("after\n")),
      ],
      plan,
    );
    assert.deepEqual(
      refused.map(({ path, reason }) => [path, reason]),
      [[at("no-folder/deleted.txt"), "not-writable"]],
    );
    assert.deepEqual(
      reverted.map(({ path }) => path),
      [at("free.txt")],
    );
  });

  it("shows the error of a failed command in a message", async () => {
    const told: string[] = [];
    const { showWarningMessage } = vscode.window;
    vscode.window.showWarningMessage = async (message: string) => void told.push(message);
    const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const folders = { opened: Promise.resolve(), use: () => {}, all: [] };
    const failing: Command = () =>
      Promise.reject(new Refusal("unknown-task", sentence("There is no task {0}.", "zzz")));
    const commands = registerCommands(
      ["asyncagents-test.fail"],
      () => Promise.resolve({ folders } as unknown as CommandContext),
      () => Promise.resolve({ commands: { fail: failing }, folderOf: () => undefined }),
      logger,
    );
    const run = (...args: readonly unknown[]) =>
      vscode.commands.executeCommand("asyncagents-test.fail", ...args);
    try {
      // As the editor calls it: with the shown resource and its editor group.
      assert.equal(await run(vscode.Uri.file(at("known.txt")), { groupId: 0 }), undefined);
      assert.deepEqual(told, ["There is no task zzz."]);
      assert.equal(await run("zzz"), undefined);
      assert.equal(told.length, 2);
    } finally {
      commands.dispose();
      vscode.window.showWarningMessage = showWarningMessage;
    }
  });

  it("runs a command once the window it was run in has opened, and says if it couldn't", async () => {
    const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const context = { folders: { opened: Promise.resolve(), use: () => {}, all: [] } };
    const done: string[] = [];
    const note: Command = async (_context, what) => void done.push(String(what));
    const load = () => Promise.resolve({ commands: { note }, folderOf: () => undefined });
    const run = (what: string) => vscode.commands.executeCommand("asyncagents-test.note", what);
    let open = (_context: CommandContext): void => undefined;
    const opened = new Promise<CommandContext>((resolve) => (open = resolve));
    const commands = registerCommands(["asyncagents-test.note"], () => opened, load, logger);
    try {
      const early = run("run");
      await new Promise(setImmediate);
      done.push("opened");
      open(context as unknown as CommandContext);
      await early;
      assert.deepEqual(done, ["opened", "run"]);
    } finally {
      commands.dispose();
    }
    const told: string[] = [];
    const { showErrorMessage } = vscode.window;
    vscode.window.showErrorMessage = async (message: string) => void told.push(message);
    const failed = () => Promise.reject(new Error("No such file"));
    const others = registerCommands(["asyncagents-test.note"], failed, load, logger);
    try {
      await run("never");
      assert.deepEqual(told, ["Unexpected error. See the log for details."]);
      assert.deepEqual(done, ["opened", "run"]);
    } finally {
      others.dispose();
      vscode.window.showErrorMessage = showErrorMessage;
    }
  });

  it("lets programs accept and revert changes, and says why a file is left alone", async function () {
    this.timeout(120_000);
    writeFileSync(at("known.txt"), "one\ntwo\n");
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>("async-agents.opencode-async-agents");
    const api = await (extension ?? assert.fail()).activate();
    await api.ready();
    const write = (name: string, content: string) => ({
      tools: [{ name: "write", args: { filePath: at(name), content } }],
    });
    const { id } = await api.tasks.launch({
      prompt: script([
        write("keep.txt", "kept\n"),
        write("drop.txt", "dropped\n"),
        write("late.txt", "late\n"),
        { tools: [{ name: "read", args: { filePath: at("known.txt") } }] },
        write("known.txt", "ONE\ntwo\n"),
        { text: "Done." },
      ]),
    });
    await api.tasks.wait(id, { timeoutMs: 60_000 });
    const { changes } = api;
    assert.equal((await changes.read(id)).files.length, 4);
    assert.deepEqual(await changes.accept(id, ["review/keep.txt"]), [at("keep.txt")]);
    assert.deepEqual(await changes.revert(id, [at("drop.txt")]), {
      reverted: [at("drop.txt")],
      refused: [],
    });
    assert.ok(!existsSync(at("drop.txt")));
    await assert.rejects(
      changes.revert(id, ["review/nowhere.txt"]),
      /didn't change the file "review\/nowhere.txt"/,
    );
    writeFileSync(at("late.txt"), "a person's\n");
    const { reverted, refused } = await changes.revert(id);
    assert.deepEqual(reverted, []);
    assert.deepEqual(
      refused.map(({ path, reason }) => [path, reason]),
      [
        [at("known.txt"), "no-snapshot"],
        [at("late.txt"), "changed-since"],
      ],
    );
    assert.match(refused[1]?.message ?? "", /^review\/late.txt: has since changed/);
    // Accepted changes are not among the remaining ones.
    assert.equal(readFileSync(at("keep.txt"), "utf8"), "kept\n");
    assert.deepEqual(await changes.accept(id), [at("known.txt"), at("late.txt")]);
    assert.deepEqual(await changes.accept(id), []);
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });
});
