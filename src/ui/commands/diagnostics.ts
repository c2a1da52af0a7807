import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import type { ServerContext } from "./command.ts";

/** Writes what helps to find the cause of a problem to a file that the user selects, and opens it for review. */
export async function collectDiagnostics({ daemon }: ServerContext): Promise<void> {
  const uri = await vscode.window.showSaveDialog({
    title: vscode.l10n.t("Save Diagnostics"),
    defaultUri: vscode.Uri.file(join(homedir(), "async-agents-diagnostics.json")),
    filters: { JSON: ["json"] },
  });
  if (!uri) return;
  const background = await (await daemon()).diagnostics();
  const window = {
    version: vscode.version,
    app: vscode.env.appName,
    remote: vscode.env.remoteName,
    isTrusted: vscode.workspace.isTrusted,
  };
  const text = `${JSON.stringify({ window, background }, undefined, 2)}\n`;
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  await vscode.window.showTextDocument(uri);
}
