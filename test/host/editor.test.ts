import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { ModelClient } from "../support/model-client.ts";
import { messageText } from "../support/script.ts";
import { until } from "../support/wait.ts";

const EXTENSION = "async-agents.opencode-async-agents";
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MEGABYTE = 1024 * 1024;

describe("launching on what is in the editor, from code", () => {
  const model = ModelClient.fromEnv();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const at = (name: string): vscode.Uri => vscode.Uri.file(join(folder, name));
  const problems = vscode.languages.createDiagnosticCollection("test");

  const launch = async (command: string, ...args: readonly unknown[]): Promise<Task> =>
    (await vscode.commands.executeCommand<Task | undefined>(`asyncagents.${command}`, ...args)) ??
    assert.fail("no task");

  /** What the model was told with the prompt of a task. */
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
    await (await extension.activate()).ready();
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
    // What is not saved would be asked about.
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });
  after(() => problems.dispose());

  it("what is selected goes as its lines, and words of a line are quoted", async () => {
    const place = new vscode.Location(at("sum.py"), new vscode.Range(2, 0, 4, 0));
    const text = await told(await launch("launchOnSelection", place, { prompt: "Explain." }));
    assert.match(text, /^Explain\.\n\nsum\.py:3-4/);
    assert.match(text, /3: line_3/);
    assert.doesNotMatch(text, /5: line_5/);
    const word = new vscode.Location(at("sum.py"), new vscode.Range(6, 0, 6, 6));
    assert.match(
      await told(await launch("launchOnSelection", word, { prompt: "Rename." })),
      /sum\.py:7: `line_7`/,
    );
  });

  it("a prompt alone, as a key binding gives it, is about the selection of the active editor", async () => {
    const editor = await vscode.window.showTextDocument(at("sum.py"));
    editor.selection = new vscode.Selection(9, 0, 9, 12);
    assert.match(await told(await launch("launchOnSelection", { prompt: "Check." })), /10: line_10/);
  });

  it("what is not saved goes as it stands in the editor, in a fence that it cannot end", async () => {
    const document = await vscode.workspace.openTextDocument({
      language: "markdown",
      content: "```\nunsaved\n```\n",
    });
    await vscode.window.showTextDocument(document);
    const text = await told(await launch("launchOnFile", { prompt: "Read." }));
    assert.match(text, /not saved/);
    assert.ok(text.includes("````markdown\n```\nunsaved\n```\n````"), text);
  });

  it("5 MB that are selected go as lines of their file, of which the agent sees the first", async () => {
    const document = await vscode.workspace.openTextDocument(at("long.txt"));
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    const task = await launch("launchOnSelection", new vscode.Location(document.uri, all), {
      prompt: "Sum up.",
    });
    const text = await told(task);
    assert.match(text, /long\.txt:1-/);
    assert.match(text, /Use offset=\d+ to continue/);
    assert.ok(text.length < 100_000);
  });

  it("5 MB that are nowhere saved are refused, with what to do", async () => {
    const content = "y".repeat(99).concat("\n").repeat(52_500);
    const document = await vscode.workspace.openTextDocument({ content });
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    await assert.rejects(
      launch("launchOnSelection", new vscode.Location(document.uri, all), { prompt: "Sum up." }),
      /Untitled-\d+.* is not saved and has 5,250,000 characters; save it first, or select 100,000/,
    );
  });

  it("files, folders and pictures go together, and a folder's files are not read", async () => {
    const uris = [at("sum.py"), at("docs"), at("dot.png")];
    const task = await launch("launchOnFile", uris, { prompt: "Look.", description: "Three" });
    const text = await told(task);
    assert.match(text, /^Look\.\n\nsum\.py\ndocs\ndot\.png/);
    assert.match(text, /1: line_1/);
    assert.match(text, /guide\.md/);
    assert.doesNotMatch(text, /# Guide/);
    assert.equal(task.description, "Three");
    const request = (await model.requests()).find(({ sessionID, title }) => sessionID === task.id && !title);
    assert.ok(JSON.stringify(request?.messages).includes(PICTURE));
  });

  it("what cannot go is refused by its name, and nothing is launched", async () => {
    const prompt = { prompt: "Look." };
    await assert.rejects(launch("launchOnFile", at("data.bin"), prompt), /“data\.bin” is a binary file/);
    await assert.rejects(launch("launchOnFile", at("gone.ts"), prompt), /“gone\.ts” does not exist any more/);
    const many = Array.from({ length: 51 }, (_, index) => at(`many/${index}.ts`));
    await assert.rejects(launch("launchOnFile", many, prompt), /51 files are chosen, and 50 go/);
    writeFileSync(at("huge.png").fsPath, Buffer.alloc(11 * MEGABYTE));
    await assert.rejects(launch("launchOnFile", at("huge.png"), prompt), /larger than 10 MB/);
    await assert.rejects(launch("launchOnChange", prompt), /no Git repository/);
    await assert.rejects(launch("launchOnFile", at("sum.py"), { prompt: " " }), /prompt is empty/);
    await assert.rejects(launch("launchOnFile", at("sum.py"), { prompt: "x", model: 7 }), /"model" must be/);
  });

  it("a problem is offered as a quick fix, and goes with its message and the lines around it", async () => {
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
    const { command = "", arguments: args = [] } = actions.command ?? {};
    const task = await vscode.commands.executeCommand<Task>(command, ...(args as unknown[]), {
      prompt: "Fix it.",
    });
    const text = await told(task);
    assert.match(text, /^Fix it\.\n\nsum\.py:20:1: error py\(42\): Cannot assign to it\./);
    assert.match(text, /10: line_10/);
    assert.match(text, /30: line_30/);
    assert.doesNotMatch(text, /31: line_31/);
  });

  it("the problem at the cursor is meant where none is named, and none is refused", async () => {
    const editor = await vscode.window.showTextDocument(at("sum.py"));
    editor.selection = new vscode.Selection(19, 10, 19, 10);
    assert.match(await told(await launch("launchOnProblem", { prompt: "Mend." })), /sum\.py:20:1: error/);
    editor.selection = new vscode.Selection(0, 0, 0, 0);
    await assert.rejects(launch("launchOnProblem", { prompt: "Mend." }), /no problem in sum\.py/);
  });
});
