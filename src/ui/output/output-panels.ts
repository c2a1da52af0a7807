import * as vscode from "vscode";

import type { FoundAt } from "../../protocol/output.ts";
import type { Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { OutputParts } from "./output-parts.ts";
import type { OutputSession } from "./output-session.ts";
import type { TextDocuments } from "./text-documents.ts";
import { loadPage, pageOptions } from "./web-page.ts";

const VIEW_TYPE = "asyncagents.output";

export interface PanelParts extends OutputParts {
  readonly tasks: TaskCommands;
  readonly folders: Folders;
  readonly documents: TextDocuments;
}

interface OpenPanel {
  readonly panel: vscode.WebviewPanel;
  readonly session: Promise<OutputSession>;
}

/** The output panels: at most one per task; restored after a window reload. */
export class OutputPanels implements vscode.Disposable {
  private readonly panels = new Map<string, OpenPanel>();
  private readonly shown = new vscode.EventEmitter<string>();
  /** Fires with the ID of a task whose output the user can see from now on. */
  readonly onDidShow = this.shown.event;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly parts: PanelParts,
  ) {}

  /** Shows the task's output; a panel that is already open is revealed in place. */
  show(taskID: string, { preserveFocus = false }: { preserveFocus?: boolean } = {}): void {
    const open = this.panels.get(taskID);
    if (open) {
      open.panel.reveal(undefined, preserveFocus);
      return;
    }
    const description = this.parts.known.child(taskID)?.description;
    const panel = vscode.window.createWebviewPanel(
      VIEW_TYPE,
      description === undefined ? vscode.l10n.t("Task Output") : title(description),
      { viewColumn: vscode.ViewColumn.Active, preserveFocus },
      pageOptions(this.extensionUri),
    );
    this.fill(panel, taskID);
  }

  /** Shows the task's output, and there the box for finding text at this match. */
  showMatch(taskID: string, at: FoundAt): void {
    this.show(taskID);
    const open = this.panels.get(taskID);
    if (open) this.use(open.session, (loaded) => loaded.find(at));
  }

  /** Whether the user can see this task's output now. */
  isShown(taskID: string): boolean {
    return this.panels.get(taskID)?.panel.visible ?? false;
  }

  /** Shows the box for finding text in the panel that the user is in. */
  find(): void {
    for (const { panel, session } of this.panels.values())
      if (panel.active) this.use(session, (loaded) => loaded.find());
  }

  /** Lets the editor restore panels that were open when the window closed. */
  registerSerializer(): vscode.Disposable {
    return vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, {
      deserializeWebviewPanel: async (panel, state: unknown) => {
        const taskID = taskOf(state);
        if (taskID === undefined || this.panels.has(taskID)) {
          panel.dispose();
          return;
        }
        panel.webview.options = pageOptions(this.extensionUri);
        this.fill(panel, taskID);
      },
    });
  }

  dispose(): void {
    for (const { panel } of [...this.panels.values()]) panel.dispose();
    this.shown.dispose();
  }

  private fill(panel: vscode.WebviewPanel, taskID: string): void {
    const { webview } = panel;
    // Loads along with the page; messages of the page wait for it.
    const session = this.loadSession(panel, taskID);
    const withSession = (use: (session: OutputSession) => void): void => this.use(session, use);
    this.panels.set(taskID, { panel, session });
    if (panel.visible) this.shown.fire(taskID);
    const subscriptions = [
      webview.onDidReceiveMessage((message: unknown) => withSession((loaded) => loaded.receive(message))),
      panel.onDidChangeViewState(() => {
        if (panel.visible) this.shown.fire(taskID);
        else withSession((loaded) => loaded.pause());
      }),
    ];
    panel.onDidDispose(() => {
      this.panels.delete(taskID);
      for (const subscription of subscriptions) subscription.dispose();
      withSession((loaded) => loaded.dispose());
    });
    loadPage(panel, this.extensionUri, "output", taskID);
  }

  private use(session: Promise<OutputSession>, use: (session: OutputSession) => void): void {
    session.then(use).catch((error: unknown) => this.parts.logger.error("An output panel failed.", error));
  }

  private async loadSession(panel: vscode.WebviewPanel, taskID: string): Promise<OutputSession> {
    const { openSession } = await import("../later.ts");
    return openSession(panel, taskID, this.parts);
  }
}

/** The task ID in the saved state of a page. */
function taskOf(state: unknown): string | undefined {
  if (typeof state !== "object" || state === null || !("taskID" in state)) return undefined;
  return typeof state.taskID === "string" ? state.taskID : undefined;
}
