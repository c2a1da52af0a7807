import * as vscode from "vscode";
import type { ConnectionState } from "../../engine/connection.ts";
import type { ConnectionView } from "../../protocol/output.ts";
import type { Folders } from "../folders/folders.ts";
import { offerCopy } from "../dialogs.ts";
import { humanMessage, showError, translate } from "../messages.ts";
import { asker } from "../requests/asker.ts";
import { OutputSession } from "./output-session.ts";
import type { OutputEditor } from "./output-parts.ts";
import type { PanelParts } from "./output-panels.ts";
import { worktreeDirectory, remedied } from "../worktrees/isolated-task.ts";
import { openWorkspaceFile } from "./workspace-file.ts";

/** Fills a panel with one task, and connects its session to the editor. */
export function openSession(
  panel: vscode.WebviewPanel,
  taskID: string,
  parts: PanelParts & Pick<OutputEditor, "showInTab" | "keep">,
): OutputSession {
  const { folders, documents, logger } = parts;
  const orShow = (action: Thenable<unknown>): Thenable<unknown> =>
    action.then(undefined, (error: unknown) => void showError(error, logger));
  const folder = (): string | undefined =>
    worktreeDirectory(parts.known, taskID) ?? folders.of(taskID)?.uri.fsPath;
  return new OutputSession(
    taskID,
    { ...parts, tasks: { ...parts.tasks, ...remedied(parts) } },
    {
      translations: vscode.l10n.bundle ?? {},
      asker,
      folder,
      connection: () => connectionOf(folders, taskID),
      onDidChangeConnection: (listener) =>
        vscode.Disposable.from(
          folders.onDidChange(listener),
          folders.follow(({ connector }) => connector.onDidChange(listener)),
        ),
      post: (message) => void panel.webview.postMessage(message),
      showInTab: parts.showInTab,
      keep: parts.keep,
      run: (command) => orShow(vscode.commands.executeCommand(`asyncagents.${command}`, taskID)),
      openDocument: (name, text) => void documents.open(name, text),
      openFile: (path, position) => openWorkspaceFile(path, position, folder()),
      // The editor opens a text as it is, but decodes and encodes an address, so that `%2F` would become `/`.
      openExternal: (url) => void orShow(vscode.env.openExternal(url as unknown as vscode.Uri)),
      openSession: (id) => void orShow(vscode.commands.executeCommand("asyncagents.showOutput", id)),
      copyText: (text) => void orShow(vscode.env.clipboard.writeText(text)),
      offerText: ({ text, error = "" }) => {
        if (text === "") return void vscode.window.showWarningMessage(error);
        const message =
          error === ""
            ? vscode.l10n.t("The message was withdrawn.")
            : vscode.l10n.t("Your message came back: {0}", error);
        void orShow(offerCopy(message, text, vscode.window.showWarningMessage));
      },
      describe: humanMessage,
      translate,
    },
  );
}

/** The connection of a session's folder, or of all folders together: connected if one is, as others need not be. */
export function connectionOf(folders: Folders, taskID?: string): ConnectionView {
  const folder = taskID === undefined ? undefined : folders.of(taskID);
  const kinds = (folder ? [folder] : folders.all).map(({ connector }) => connectionView(connector.state));
  if (kinds.includes("connecting")) return "connecting";
  // A session that no folder knows may belong to any folder that isn't connected.
  const isMissing = taskID !== undefined && kinds.includes("disconnected");
  return isMissing || !kinds.includes("connected") ? "disconnected" : "connected";
}

function connectionView({ kind }: ConnectionState): ConnectionView {
  if (kind === "connected") return "connected";
  return kind === "connecting" || kind === "reconnecting" ? "connecting" : "disconnected";
}
