import { DisposableStore } from "../../engine/disposable-store.ts";
import * as vscode from "vscode";

import type { Child } from "../../engine/subagent.ts";
import type { FoundAt } from "../../protocol/output.ts";
import type { Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import { stateOf } from "../tree/family.ts";
import type { OutputParts } from "./output-parts.ts";
import type { OutputSession } from "./output-session.ts";
import type { TextDocuments } from "./text-documents.ts";
import { loadLater } from "../load-later.ts";

const VIEW_TYPE = "asyncagents.output";
/** Two clicks on a row within this time are a double-click, in milliseconds. */
const DOUBLE_CLICK_MS = 500;

export interface PanelParts extends OutputParts {
  readonly tasks: TaskCommands;
  readonly folders: Folders;
  readonly documents: TextDocuments;
}

interface OpenPanel {
  readonly panel: vscode.WebviewPanel;
  readonly session: Promise<OutputSession>;
  /** Ends the session, so that the panel can show another task. */
  readonly end: () => void;
}

/** Where an output is shown. */
interface Showing {
  readonly preserveFocus?: boolean;
  /** Whether the panel may be used again for the next task. */
  readonly isPreview?: boolean;
}

/**
 * The output panels: at most one per task; restored after a window reload. One of them is a preview, which shows another
 * task at the next click unless the user keeps it.
 */
export class OutputPanels implements vscode.Disposable {
  private readonly panels = new Map<string, OpenPanel>();
  /** The task in the preview. */
  private previewed: string | undefined;
  /** The time of the last click, in milliseconds since 1970. */
  private clickedAt = 0;
  private readonly activated = new vscode.EventEmitter<string>();
  /** Fires with the ID of the task whose panel becomes the active editor. */
  readonly onDidActivate = this.activated.event;
  private readonly shown = new vscode.EventEmitter<string>();
  /** Fires with the ID of a task whose output the user can see from now on. */
  readonly onDidShow = this.shown.event;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly parts: PanelParts,
  ) {}

  /**
   * Shows the task of a clicked row in the preview; a double-click keeps it there.
   * @param at the time of the click, which may have waited for its row to be redrawn; in milliseconds since 1970
   */
  click(taskID: string, at: number): void {
    const isSecond = this.previewed === taskID && at - this.clickedAt < DOUBLE_CLICK_MS;
    this.clickedAt = at;
    this.show(taskID, { isPreview: !isSecond });
  }

  /** Shows the task's output; a panel that is already open is revealed in place. */
  show(taskID: string, { preserveFocus = false, isPreview = false }: Showing = {}): void {
    if (!isPreview) this.keep(taskID);
    const open = this.panels.get(taskID);
    if (open) return open.panel.reveal(undefined, preserveFocus);
    const description = this.parts.known.child(taskID)?.description;
    const name = description === undefined ? vscode.l10n.t("Task Output") : title(description);
    const used = isPreview ? this.takePreview() : undefined;
    const place = { viewColumn: vscode.ViewColumn.Active, preserveFocus };
    const panel = used ?? vscode.window.createWebviewPanel(VIEW_TYPE, name, place);
    panel.title = name;
    if (isPreview) this.previewed = taskID;
    this.fill(panel, taskID);
    used?.reveal(undefined, preserveFocus);
    if (!preserveFocus) this.activated.fire(taskID);
  }

  /** A preview becomes a panel that stays. */
  private keep(taskID: string): void {
    if (this.previewed === taskID) this.previewed = undefined;
  }

  /** The panel of the preview, ready to show another task. */
  private takePreview(): vscode.WebviewPanel | undefined {
    const open = this.panels.get(this.previewed ?? "");
    if (!open || isPinned(open.panel)) return undefined;
    open.end();
    return open.panel;
  }

  /** Shows the task's output, and there the box for finding text at this match. */
  showMatch(taskID: string, at: FoundAt): void {
    this.show(taskID);
    const open = this.panels.get(taskID);
    if (open) this.use(open.session, (loaded) => loaded.find(at));
  }

  /** The task in the panel that the user is in, if any. */
  get activeID(): string | undefined {
    for (const [taskID, { panel }] of this.panels) if (panel.active) return taskID;
    return undefined;
  }

  /** Whether the user can see this task's output now. */
  isShown(taskID: string): boolean {
    return this.panels.get(taskID)?.panel.visible ?? false;
  }

  /** Shows the box for finding text in the panel that the user is in. */
  find(): void {
    const active = this.panels.get(this.activeID ?? "");
    if (active) this.use(active.session, (loaded) => loaded.find());
  }

  /** Lets the editor restore panels that were open when the window closed. */
  registerSerializer(): vscode.Disposable {
    return vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, {
      deserializeWebviewPanel: async (panel, state: unknown) => {
        const taskID = taskOf(state);
        const open = this.panels.get(taskID);
        if (open) {
          // The editor restores a tab only when it is shown; the user may have opened the task another way before.
          this.use(open.session, (loaded) => loaded.takeOver(state));
          open.panel.reveal();
        }
        if (open || taskID === "") panel.dispose();
        else this.fill(panel, taskID);
      },
    });
  }

  dispose(): void {
    for (const { panel } of [...this.panels.values()]) panel.dispose();
    this.shown.dispose();
    this.activated.dispose();
  }

  private fill(panel: vscode.WebviewPanel, taskID: string): void {
    const page = new DisposableStore();
    const session = this.loadSession(panel, taskID, page);
    const withSession = (use: (session: OutputSession) => void): void => this.use(session, use);
    const subscriptions = new DisposableStore(
      panel.onDidChangeViewState(() => {
        if (panel.active) this.activated.fire(taskID);
        if (panel.visible) this.shown.fire(taskID);
        else withSession((loaded) => loaded.pause());
      }),
      panel.onDidDispose(() => end()),
      page,
    );
    const end = (): void => {
      this.keep(taskID);
      this.panels.delete(taskID);
      subscriptions.dispose();
      withSession((loaded) => loaded.dispose());
    };
    this.panels.set(taskID, { panel, session, end });
    if (panel.visible) this.shown.fire(taskID);
  }

  private use(session: Promise<OutputSession>, use: (session: OutputSession) => void): void {
    session.then(use).catch((error: unknown) => this.parts.logger.error("An output panel failed.", error));
  }

  private async loadSession(
    panel: vscode.WebviewPanel,
    taskID: string,
    page: DisposableStore,
  ): Promise<OutputSession> {
    const { openSession, loadPage } = await loadLater();
    const isShown = (): boolean => this.panels.get(taskID)?.panel === panel;
    const receive = (message: unknown): void => {
      const open = this.panels.get(taskID);
      if (open?.panel === panel) this.use(open.session, (loaded) => loaded.receive(message));
    };
    if (isShown()) page.add(loadPage(panel, this.extensionUri, { name: "output", taskID, receive }));
    let shown = "";
    /** Shows the title and the state in the tab, unless the panel shows another task by now. */
    const showInTab = (child: Child): void => {
      if (!isShown()) return;
      panel.title = title(child.description);
      const state = stateOf(child);
      if (shown === state) return;
      shown = state;
      panel.iconPath = vscode.Uri.joinPath(this.extensionUri, "media", `output-${state}.svg`);
    };
    return openSession(panel, taskID, { ...this.parts, showInTab, keep: () => this.keep(taskID) });
  }
}

/** Whether the user has pinned the panel's tab, or another one of that name. */
function isPinned({ title: name }: vscode.WebviewPanel): boolean {
  const { all } = vscode.window.tabGroups;
  return all.some(({ tabs }) => tabs.some(({ isPinned, label }) => isPinned && label === name));
}

/** The task ID in the saved state of a page. Empty if there is none. */
function taskOf(state: unknown): string {
  const taskID = (state as { readonly taskID?: unknown } | undefined)?.taskID;
  return typeof taskID === "string" ? taskID : "";
}
