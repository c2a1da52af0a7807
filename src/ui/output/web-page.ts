import { DisposableStore } from "../../engine/disposable-store.ts";
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { PageMessage } from "../../protocol/output.ts";
import { outputPage } from "./html.ts";

/** The pages of the extension; each has a script and a style sheet. */
type PageName = "output" | "overview";

/** How long a page that is visible may take until its script runs, in milliseconds. */
const PATIENCE_MS = 15_000;

const SCRIPTS: Readonly<Record<PageName, string>> = { output: "webview.js", overview: "overview.js" };

function pageOptions(extensionUri: vscode.Uri): vscode.WebviewOptions {
  return {
    enableScripts: true,
    enableForms: false,
    localResourceRoots: ["dist", "media"].map((folder) => vscode.Uri.joinPath(extensionUri, folder)),
  };
}

interface LoadedPage {
  readonly name: PageName;
  readonly taskID?: string;
  /** Called with each message of the page, which may be anything. */
  readonly receive: (message: unknown) => void;
  readonly patienceMs?: number;
}

/**
 * Loads a page into a panel, and gives its tab an icon. Loads it again if its script sends no message after it is shown:
 * in a browser, the editor sometimes loses a script on its way to a page that follows another one quickly. Dispose of the
 * result before the panel shows another page.
 */
export function loadPage(
  panel: vscode.WebviewPanel,
  extensionUri: vscode.Uri,
  { name, taskID = "", receive, patienceMs = PATIENCE_MS }: LoadedPage,
): vscode.Disposable {
  const { webview } = panel;
  webview.options = pageOptions(extensionUri);
  const file = (...path: string[]): vscode.Uri => vscode.Uri.joinPath(extensionUri, ...path);
  const served = (...path: string[]): string => webview.asWebviewUri(file(...path)).toString();
  panel.iconPath = { light: file("media", "output-light.svg"), dark: file("media", "output-dark.svg") };
  const load = (): void => {
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
  };
  let overdue: NodeJS.Timeout | undefined;
  const stop = (): void => clearTimeout(overdue);
  /** Waits longer each time: over a slow connection, each load would end the one before it. */
  const loadAgain = (afterMs: number): void => {
    overdue = setTimeout(() => {
      load();
      loadAgain(afterMs * 2);
    }, afterMs);
  };
  let wasVisible = false;
  /** The editor discards a page that is hidden, and loads it again when it is shown. */
  const follow = (): void => {
    if (panel.visible === wasVisible) return;
    wasVisible = panel.visible;
    stop();
    if (wasVisible) loadAgain(patienceMs);
  };
  const watch = new DisposableStore(
    { dispose: stop },
    webview.onDidReceiveMessage((sent: unknown) => {
      // The page of another task works until this one replaces it.
      if (!isFrom(sent, taskID)) return;
      stop();
      receive(sent.message);
    }),
    panel.onDidChangeViewState(follow),
    panel.onDidDispose(() => watch.dispose()),
  );
  load();
  follow();
  return watch;
}

function isFrom(sent: unknown, taskID: string): sent is PageMessage {
  return typeof sent === "object" && sent !== null && "taskID" in sent && sent.taskID === taskID;
}
