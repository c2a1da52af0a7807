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
  const { version, env, workspace } = vscode;
  const window = { version, app: env.appName, remote: env.remoteName, isTrusted: workspace.isTrusted };
  const text = `${JSON.stringify({ window, background }, undefined, 2)}\n`;
  await workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  await vscode.window.showTextDocument(uri);
}
