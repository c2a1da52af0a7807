import * as vscode from "vscode";
import type { PanelParts } from "./output-panels.ts";
import { loadLater } from "../load-later.ts";

const VIEW_TYPE = "asyncagents.overview";

/** The editor tab with the tasks of the day: at most one, restored after a window reload. */
export class Overview implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly serializer: vscode.Disposable;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly parts: PanelParts,
  ) {
    this.serializer = vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, {
      deserializeWebviewPanel: (panel) => this.fill(panel),
    });
  }

  show(): void {
    if (this.panel) this.panel.reveal();
    else
      void this.fill(
        vscode.window.createWebviewPanel(VIEW_TYPE, vscode.l10n.t("Task Overview"), vscode.ViewColumn.Active),
      );
  }

  dispose(): void {
    this.serializer.dispose();
    this.panel?.dispose();
  }

  private async fill(panel: vscode.WebviewPanel): Promise<void> {
    // The editor restores a tab only when it is shown; the overview may have been opened another way before.
    this.panel?.dispose();
    this.panel = panel;
    panel.onDidDispose(() => {
      if (this.panel === panel) this.panel = undefined;
    });
    const { openOverview, loadPage } = await loadLater();
    const receive = openOverview(panel, this.parts);
    loadPage(panel, this.extensionUri, { name: "overview", receive });
  }
}
