import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { loadPage } from "../../src/ui/output/web-page.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("a page in an editor tab", () => {
  let panel: vscode.WebviewPanel;

  beforeEach(() => {
    panel = vscode.window.createWebviewPanel("test", "Page", vscode.ViewColumn.Active);
  });
  afterEach(() => panel.dispose());

  it("is loaded again as long as its script doesn't run, also when it is shown again, and no longer", async () => {
    const extension = tempDir("extension");
    for (const name of ["dist", "media"]) mkdirSync(join(extension, name));
    const script = join(extension, "dist", "webview.js");
    const pages = new Set<string>();
    const answered = new Set<string>();
    panel.webview.onDidReceiveMessage(() => answered.add(panel.webview.html));
    const page = loadPage(panel, vscode.Uri.file(extension), { name: "output", patienceMs: 1_000 });
    await until("another load", () => pages.add(panel.webview.html).size > 1);
    writeFileSync(script, "acquireVsCodeApi().postMessage({});");
    await until("the script", () => answered.size > 0);
    page.dispose();
    const [last] = answered;
    // The loads of the next page show that those of the first are over.
    const next = loadPage(panel, vscode.Uri.file(tempDir("empty")), { name: "output", patienceMs: 1_000 });
    const seen = new Set([panel.webview.html]);
    await until("its second load", () => seen.add(panel.webview.html).size > 1);
    next.dispose();
    assert.equal(seen.size, 2);
    assert.ok(last !== undefined && !seen.has(last));

    loadPage(panel, vscode.Uri.file(extension), { name: "output", patienceMs: 1_000 });
    answered.clear();
    await until("the script of a third page", () => answered.size > 0);
    const [shown] = answered;
    const other = join(extension, "other.txt");
    writeFileSync(other, "");
    await vscode.window.showTextDocument(vscode.Uri.file(other), { viewColumn: vscode.ViewColumn.Active });
    await until("the page to be hidden", () => !panel.visible);
    rmSync(script);
    panel.reveal();
    await until("a load after the page is shown again", () => panel.webview.html !== shown);
  });
});
