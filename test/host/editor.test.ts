import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import type { PromptContext } from "../../src/ui/commands/command.ts";
import { readSubject, launchPrompt, launchTemplate } from "../../src/ui/commands/editor-commands.ts";
import { changeSubject } from "../../src/ui/editor/subjects.ts";
import type { Folders } from "../../src/ui/folders/folders.ts";
import { ModelClient } from "../support/model-client.ts";
import { messageText } from "../support/script.ts";
import { until } from "../support/wait.ts";

const EXTENSION = "async-agents.opencode-async-agents";
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MEGABYTE = 1024 * 1024;
const LINE = new vscode.Range(0, 0, 0, 6);

describe("launching on the editor's content from code", () => {
  const model = ModelClient.fromEnv();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const at = (name: string): vscode.Uri => vscode.Uri.file(join(folder, name));
  const problems = vscode.languages.createDiagnosticCollection("test");

  let api: AsyncAgentsApi;
  const launchOn: AsyncAgentsApi["tasks"]["launchOn"] = (...args) => api.tasks.launchOn(...args);

  /** What the model received with the prompt of a task. */
  async function told({ id }: Task): Promise<string> {
    const request = await until(
      "the request to the model",
      async () => (await model.requests()).find(({ sessionID, title }) => sessionID === id && !title),
      60_000,
    );
    return messageText(request.messages.findLast(({ role }) => role === "user"));
  }

  before(async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>(EXTENSION);
    assert.ok(extension);
    api = await extension.activate();
    await api.ready();
    mkdirSync(at("docs").fsPath);
    const files: Readonly<Record<string, string | Buffer>> = {
      "sum.py": Array.from({ length: 40 }, (_, index) => `line_${index + 1} = ${index + 1}`).join("\n"),
      "docs/guide.md": "# Guide\n",
      "data.bin": Buffer.from([1, 0, 2]),
      "dot.png": Buffer.from(PICTURE, "base64"),
      "long.txt": `${"x".repeat(99)}\n`.repeat(52_500),
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(at(name).fsPath, content);
  });

  afterEach(async () => {
    // Otherwise the editor would ask about unsaved text.
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });
  after(() => problems.dispose());

  /** Lets Git's extension of the editor report this repository alone. */
  async function withRepository(
    state: Readonly<Record<"mergeChanges" | "indexChanges" | "workingTreeChanges", readonly object[]>>,
    diff: string,
    run: () => Promise<void>,
  ): Promise<void> {
    const { getExtension } = vscode.extensions;
    const repository = { state, diffWith: async () => diff };
    const git = {
      activate: async () => ({
        getAPI: () => ({ repositories: [repository], getRepository: () => repository }),
      }),
    };
    Object.assign(vscode.extensions, { getExtension: () => git });
    try {
      await run();
    } finally {
      Object.assign(vscode.extensions, { getExtension });
    }
  }

  it("leaves out a change that was staged and then undone, and says so if there is no other", async () => {
    const same = { uri: at("sum.py"), status: 5 };
    const fresh = { uri: at("docs/guide.md"), status: 7 };
    const state = {
      mergeChanges: [],
      indexChanges: [{ ...same, status: 0 }],
      workingTreeChanges: [same, fresh],
    };
    await withRepository(state, "", async () => {
      const { text } = await changeSubject([], []);
      assert.match(text, /^New, not committed yet:\ndocs\/guide\.md/);
      assert.doesNotMatch(text, /sum\.py/);
      state.workingTreeChanges = [same];
      await assert.rejects(changeSubject([], []), /There are no changes since the last commit/);
    });
  });

  it("says that unsaved changes aren't part of a diff", async () => {
    const state = {
      mergeChanges: [],
      indexChanges: [],
      workingTreeChanges: [{ uri: at("sum.py"), status: 5 }],
    };
    await withRepository(state, "-line_1 = 0\n+line_1 = 1\n", async () => {
      assert.equal((await changeSubject([], [])).note, undefined);
      const editor = await vscode.window.showTextDocument(at("sum.py"));
      await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "unsaved = 1\n"));
      const { note, text } = await changeSubject([], []);
      assert.equal(note, "Unsaved changes aren't part of the diff.");
      assert.doesNotMatch(text, /unsaved = 1/);
    });
  });

  it("sends a selection as its lines, and quotes part of a line", async () => {
    const place = new vscode.Location(at("sum.py"), new vscode.Range(2, 0, 4, 0));
    const text = await told(await launchOn("selection", { prompt: "Explain." }, place));
    assert.match(text, /^Explain\.\n\nsum\.py:3-4/);
    assert.match(text, /3: line_3/);
    assert.doesNotMatch(text, /5: line_5/);
    const word = new vscode.Location(at("sum.py"), new vscode.Range(6, 0, 6, 6));
    assert.match(await told(await launchOn("selection", { prompt: "Rename." }, word)), /sum\.py:7: `line_7`/);
  });

  it("uses the selection of the active editor if only a prompt is given", async () => {
    const editor = await vscode.window.showTextDocument(at("sum.py"));
    editor.selection = new vscode.Selection(9, 0, 9, 12);
    assert.match(await told(await launchOn("selection", { prompt: "Check." })), /10: line_10/);
  });

  it("sends unsaved text as it is in the editor, in a fence longer than those inside", async () => {
    const document = await vscode.workspace.openTextDocument({
      language: "markdown",
      content: "```\nunsaved\n```\n",
    });
    await vscode.window.showTextDocument(document);
    const text = await told(await launchOn("file", { prompt: "Read." }));
    assert.match(text, /not saved/);
    assert.ok(text.includes("````markdown\n```\nunsaved\n```\n````"), text);
  });

  it("sends a selection of 5 MB as lines of the file, of which the agent sees the first", async () => {
    const document = await vscode.workspace.openTextDocument(at("long.txt"));
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    const task = await launchOn("selection", { prompt: "Sum up." }, new vscode.Location(document.uri, all));
    const text = await told(task);
    assert.match(text, /long\.txt:1-/);
    assert.match(text, /Use offset=\d+ to continue/);
    assert.ok(text.length < 100_000);
  });

  it("refuses 5 MB of unsaved text, and says what to do", async () => {
    const content = "y".repeat(99).concat("\n").repeat(52_500);
    const document = await vscode.workspace.openTextDocument({ content });
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    await assert.rejects(
      launchOn("selection", { prompt: "Sum up." }, new vscode.Location(document.uri, all)),
      /Untitled-\d+.* isn't saved and has 5,250,000 characters\. Save it first, or select at most 100,000/,
    );
  });

  it("sends files, folders and images together, and does not read the files of a folder", async () => {
    const uris = [at("sum.py"), at("docs"), at("dot.png")];
    const task = await launchOn("file", { prompt: "Look.", description: "Three" }, uris);
    const text = await told(task);
    assert.match(text, /^Look\.\n\nsum\.py\ndocs\ndot\.png/);
    assert.match(text, /1: line_1/);
    assert.match(text, /guide\.md/);
    assert.doesNotMatch(text, /# Guide/);
    assert.equal(task.description, "Three");
    const request = (await model.requests()).find(({ sessionID, title }) => sessionID === task.id && !title);
    assert.ok(JSON.stringify(request?.messages).includes(PICTURE));
  });

  it("refuses by name what cannot be sent", async () => {
    const prompt = { prompt: "Look." };
    await assert.rejects(launchOn("file", prompt, at("data.bin")), /"data\.bin" is a binary file/);
    await assert.rejects(launchOn("file", prompt, at("gone.ts")), /"gone\.ts" no longer exists/);
    const many = Array.from({ length: 51 }, (_, index) => at(`many/${index}.ts`));
    await assert.rejects(
      launchOn("file", prompt, many),
      /51 files are selected; a prompt can have at most 50/,
    );
    writeFileSync(at("huge.png").fsPath, Buffer.alloc(11 * MEGABYTE));
    await assert.rejects(launchOn("file", prompt, at("huge.png")), /larger than 10 MB/);
    // Anything else is not opened, because a pipe without a writer would block.
    if (process.platform !== "win32")
      await assert.rejects(
        launchOn("file", prompt, vscode.Uri.file("/dev/null")),
        /"\/dev\/null" isn't a file on this computer/,
      );
    await assert.rejects(launchOn("change", prompt), /No Git repository/);
    await assert.rejects(launchOn("file", { prompt: " " }, at("sum.py")), /prompt is empty/);
    await assert.rejects(launchOn("file", { prompt: "x", model: "none" }, at("sum.py")), /provider\/model/);
  });

  it("offers a problem as a quick fix, and sends its message and the lines around it", async () => {
    const range = new vscode.Range(19, 0, 19, 7);
    const problem = new vscode.Diagnostic(range, "Cannot assign to it.", vscode.DiagnosticSeverity.Error);
    problem.source = "py";
    problem.code = 42;
    problems.set(at("sum.py"), [problem]);
    await vscode.window.showTextDocument(at("sum.py"));
    const actions = await until("the quick fix", async () => {
      const all = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        at("sum.py"),
        range,
      );
      return all.find(({ title }) => title === "Launch Agent on This Problem…");
    });
    assert.equal(actions.kind?.value, vscode.CodeActionKind.QuickFix.value);
    const { command, arguments: args = [] } = actions.command ?? {};
    assert.equal(command, "asyncagents.launchOn");
    const [kind, uri, given] = args as ["problem", vscode.Uri, readonly vscode.Diagnostic[]];
    const text = await told(await launchOn(kind, { prompt: "Fix it." }, uri, given));
    assert.match(text, /^Fix it\.\n\nsum\.py:20:1: error py\(42\): Cannot assign to it\./);
    assert.match(text, /10: line_10/);
    assert.match(text, /30: line_30/);
    assert.doesNotMatch(text, /31: line_31/);
  });

  it("uses the problem at the cursor if none is given, and refuses if there is none", async () => {
    const editor = await vscode.window.showTextDocument(at("sum.py"));
    editor.selection = new vscode.Selection(19, 10, 19, 10);
    assert.match(await told(await launchOn("problem", { prompt: "Mend." })), /sum\.py:20:1: error/);
    editor.selection = new vscode.Selection(0, 0, 0, 0);
    await assert.rejects(launchOn("problem", { prompt: "Mend." }), /No problems in sum\.py/);
  });

  it("names the first 100 of many problems, and counts the rest", async () => {
    const many = Array.from({ length: 1_000 }, (_, at) => new vscode.Diagnostic(LINE, `Problem ${at + 1}.`));
    const text = await told(await launchOn("problem", { prompt: "Mend all." }, at("sum.py"), many));
    assert.match(text, /Problem 100\.\n… and 900 more problems/);
    assert.doesNotMatch(text, /Problem 101\./);
  });
});

describe("launching on the editor's content with a key", () => {
  afterEach(() => vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor"));

  it("makes the editor's folder the current one, even if a row of another folder was selected since", async () => {
    const document = await vscode.workspace.openTextDocument({ content: "one\ntwo\n" });
    const editor = await vscode.window.showTextDocument(document);
    editor.selection = new vscode.Selection(0, 0, 0, 3);
    const used: unknown[] = [];
    const folders = {
      at: (uri: vscode.Uri) => `the folder of ${uri.toString()}`,
      use: (folder: unknown) => void used.push(folder),
    } as unknown as Folders;
    for (const kind of ["selection", "file"] as const) await readSubject({ folders }, kind, []);
    // They go no further: there is no folder to connect.
    const context = { folders, promptEditors: { target: () => undefined } } as unknown as PromptContext;
    await assert.rejects(launchPrompt(context, undefined));
    await assert.rejects(launchTemplate(context, "Explain"));
    const own = `the folder of ${document.uri.toString()}`;
    assert.deepEqual(used, [own, own, own, own]);
  });
});
