import * as vscode from "vscode";
import type { ConnectionState } from "../engine/connection.ts";
import type { TakenSince } from "../engine/taken-since.ts";
import { isRunning, type Child, type Subagent } from "../engine/subagent.ts";
import type { Tasks } from "./folders/all-tasks.ts";
import type { Folder } from "./folders/folder.ts";
import type { Folders } from "./folders/folders.ts";
import type { describe as Describe } from "./status-bar-text.ts";

/** Many things can change within one moment; the item shows them together, in milliseconds. */
const GATHER_MS = 100;

/** Tells in the status bar how many agents work and what waits for the user, and is not there while neither is so. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "asyncagents.status",
    vscode.StatusBarAlignment.Left,
  );
  private readonly subscriptions: readonly { dispose(): void }[];
  /** Those at work. */
  private readonly subagents = new Map<string, Subagent>();
  private gathering: NodeJS.Timeout | undefined;
  /** What was taken today, as it was read last. */
  private today: readonly TakenSince[] = [];
  private isReading = false;
  /** What is shown, so that a change which changes nothing here costs nothing. */
  private shown: string | undefined;

  constructor(
    private readonly known: Tasks,
    private readonly folders: Folders,
    /** The view of the tasks. */
    private readonly viewID: string,
  ) {
    this.item.name = vscode.l10n.t("Async Agents");
    const updateSoon = (): void => {
      this.gathering ??= setTimeout(() => void this.update(), GATHER_MS);
    };
    this.subscriptions = [
      this.item,
      known.onDidChange(updateSoon),
      known.onDidChangeSubagent(({ id, after }) => {
        if (after && isRunning(after)) this.subagents.set(id, after);
        else if (!this.subagents.delete(id)) return;
        updateSoon();
      }),
      known.onDidChangeRequests(updateSoon),
      folders.onDidChange(updateSoon),
      folders.follow(({ connector }) => connector.onDidChange(updateSoon)),
    ];
  }

  dispose(): void {
    clearTimeout(this.gathering);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private active(): readonly Child[] {
    return [...this.known.active(), ...this.subagents.values()].filter((child) => this.isShown(child));
  }

  /** Of a server that was stopped, or left, nothing is told. */
  private isShown({ id }: Child): boolean {
    return !isIn(this.folders.of(id), "disconnected");
  }

  private hide(): void {
    this.shown = undefined;
    this.item.hide();
  }

  private async update(): Promise<void> {
    this.gathering = undefined;
    if (this.active().length === 0) return this.hide();
    const { describe } = await import("./later.ts");
    this.show(describe);
    // What the day took may be long in coming.
    if (await this.readToday()) this.show(describe);
  }

  /** Resolves to whether it is known anew. */
  private async readToday(): Promise<boolean> {
    if (this.isReading) return false;
    this.isReading = true;
    try {
      this.today = await this.known.takenSince(new Date().setHours(0, 0, 0, 0));
      return true;
    } catch {
      // Without a connection the sums stay as they were.
      return false;
    } finally {
      this.isReading = false;
    }
  }

  private show(describe: typeof Describe): void {
    const { today } = this;
    const active = this.active();
    if (active.length === 0) return this.hide();
    const requests = this.known.openRequests().filter(({ child }) => this.isShown(child));
    const waiting = new Set(requests.map(({ child }) => child.id));
    const working = active.filter(({ id }) => !waiting.has(id));
    const isLost = active.some(({ id }) => isIn(this.folders.of(id), "reconnecting", "failed"));
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

/** Whether the connection of a folder, which may be gone, is in one of these states. */
function isIn(folder: Folder | undefined, ...kinds: readonly ConnectionState["kind"][]): boolean {
  return kinds.includes(folder?.connector.state.kind ?? "disconnected");
}
