import * as vscode from "vscode";
import type { TaskEngine } from "../engine/engine.ts";
import { isAtWork, type Subagent } from "../engine/subagent.ts";
import type { VisibleConnection } from "./output/output-source.ts";

/** Many things can change within one moment; the item shows them together, in milliseconds. */
const GATHER_MS = 100;

/** Tells in the status bar how many agents work and what waits for the person, and is not there while neither is so. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "asyncagents.status",
    vscode.StatusBarAlignment.Left,
  );
  private readonly subscriptions: readonly { dispose(): void }[];
  /** Those at work. */
  private readonly subagents = new Map<string, Subagent>();
  private gathering: NodeJS.Timeout | undefined;
  /** What is shown, so that a change which changes nothing here costs nothing. */
  private shown: string | undefined;

  constructor(
    private readonly engine: TaskEngine,
    private readonly connection: VisibleConnection,
    /** The view of the tasks. */
    private readonly viewID: string,
  ) {
    this.item.name = vscode.l10n.t("Async Agents");
    const updateSoon = (): void => {
      this.gathering ??= setTimeout(() => void this.update(), GATHER_MS);
    };
    this.subscriptions = [
      this.item,
      engine.onDidChange(updateSoon),
      engine.onDidChangeSubagent(({ id, after }) => {
        if (after && isAtWork(after)) this.subagents.set(id, after);
        else if (!this.subagents.delete(id)) return;
        updateSoon();
      }),
      engine.onDidChangeRequests(updateSoon),
      connection.onDidChange(updateSoon),
    ];
  }

  dispose(): void {
    clearTimeout(this.gathering);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** Of a server that was stopped, or left, nothing is told. */
  private isQuiet(): boolean {
    const isLeft = this.connection.state.kind === "disconnected";
    return isLeft || this.engine.active().length + this.subagents.size === 0;
  }

  private hide(): void {
    this.shown = undefined;
    this.item.hide();
  }

  private async update(): Promise<void> {
    this.gathering = undefined;
    if (this.isQuiet()) return this.hide();
    const { describe } = await import("./status-bar-text.ts");
    const today = await this.engine.takenSince(new Date().setHours(0, 0, 0, 0));
    if (this.isQuiet()) return this.hide();
    const requests = this.engine.openRequests();
    const waiting = new Set(requests.map(({ child }) => child.id));
    const working = [...this.engine.active(), ...this.subagents.values()].filter(
      ({ id }) => !waiting.has(id),
    );
    const { kind } = this.connection.state;
    const isLost = kind !== "connected" && kind !== "connecting";
    const { text, label, tooltip } = describe({ working, requests, isLost, today });
    if (text === "" || this.shown === label + tooltip.value) return;
    this.shown = label + tooltip.value;
    const isAsked = requests.length > 0 && !isLost;
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label };
    this.item.backgroundColor = isAsked
      ? new vscode.ThemeColor("statusBarItem.warningBackground")
      : undefined;
    this.item.command = isAsked ? "asyncagents.answer" : `${this.viewID}.focus`;
    this.item.show();
  }
}
