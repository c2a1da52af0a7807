import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { outputPage } from "./html.ts";

/** The pages of the extension; each has a script and a style sheet. */
type PageName = "output" | "overview";

const SCRIPTS: Readonly<Record<PageName, string>> = { output: "webview.js", overview: "overview.js" };

function pageOptions(extensionUri: vscode.Uri): vscode.WebviewOptions {
  return {
    enableScripts: true,
    enableForms: false,
    localResourceRoots: ["dist", "media"].map((folder) => vscode.Uri.joinPath(extensionUri, folder)),
  };
}

/** Loads a page into a panel, and gives its tab an icon. */
export function loadPage(
  panel: vscode.WebviewPanel,
  extensionUri: vscode.Uri,
  name: PageName,
  taskID = "",
): void {
  const { webview } = panel;
  webview.options = pageOptions(extensionUri);
  const file = (...path: string[]): vscode.Uri => vscode.Uri.joinPath(extensionUri, ...path);
  const served = (...path: string[]): string => webview.asWebviewUri(file(...path)).toString();
  panel.iconPath = { light: file("media", "output-light.svg"), dark: file("media", "output-dark.svg") };
  webview.html = outputPage({
    taskID,
    title: panel.title,
    loading: vscode.l10n.t("Loading…"),
    language: vscode.env.language,
    scriptUri: served("dist", SCRIPTS[name]),
    styleUri: served("media", `${name}.css`),
    cspSource: webview.cspSource,
    nonce: randomBytes(16).toString("base64"),
  });
}
