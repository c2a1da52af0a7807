import { DisposableStore } from "../engine/disposable-store.ts";
import * as vscode from "vscode";
import type { ConnectionState } from "../engine/connection.ts";
import type { TakenSince } from "../engine/taken-since.ts";
import { isRunning, type Child, type Subagent } from "../engine/subagent.ts";
import { SHOW_ACTIVE } from "./commands/internal-commands.ts";
import type { Tasks } from "./folders/all-tasks.ts";
import type { Folder, Folders } from "./folders/folders.ts";
import { isQueuedChild } from "./tree/family.ts";
import type { describe as Describe } from "./status-bar-text.ts";
import { loadLater } from "./load-later.ts";

/** Changes within this time are shown together, in milliseconds. */
const GATHER_MS = 100;

/** Shows in the status bar how many agents are running and queued, and what waits for the user; hidden if neither applies. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "asyncagents.status",
    vscode.StatusBarAlignment.Left,
  );
  private readonly disposables: DisposableStore;
  /** The running subagents. */
  private readonly subagents = new Map<string, Subagent>();
  private gathering: NodeJS.Timeout | undefined;
  /** Today's usage, as last read. */
  private today: readonly TakenSince[] = [];
  private isReading = false;
  /** The text shown, so that changes which don't affect it are skipped. */
  private shown: string | undefined;

  constructor(
    private readonly known: Tasks,
    private readonly folders: Folders,
  ) {
    this.item.name = vscode.l10n.t("Async Agents");
    const updateSoon = (): void => {
      this.gathering ??= setTimeout(() => void this.update(), GATHER_MS);
    };
    this.disposables = new DisposableStore(
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
    );
  }

  dispose(): void {
    clearTimeout(this.gathering);
    this.disposables.dispose();
  }

  private active(): readonly Child[] {
    return [...this.known.active(), ...this.subagents.values()].filter((child) => this.isShown(child));
  }

  /** Agents of a server that was stopped or disconnected aren't shown. */
  private isShown({ id }: Child): boolean {
    return !isIn(this.folders.of(id), "disconnected");
  }

  private get isLost(): boolean {
    return this.active().some(({ id }) => isIn(this.folders.of(id), "reconnecting", "failed"));
  }

  private hide(): void {
    this.shown = undefined;
    this.item.hide();
  }

  private async update(): Promise<void> {
    this.gathering = undefined;
    if (this.active().length === 0) return this.hide();
    const { describe } = await loadLater();
    this.show(describe);
    // A call would try to reach a lost daemon again at each of its changes. Reading today's usage may take a while.
    if (!this.isLost && (await this.readToday())) this.show(describe);
  }

  /** Resolves to whether new values were read. */
  private async readToday(): Promise<boolean> {
    if (this.isReading) return false;
    this.isReading = true;
    try {
      this.today = await this.known.takenSince(new Date().setHours(0, 0, 0, 0));
      return true;
    } catch {
      // Without a connection the last values remain.
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
    const queued = working.filter(isQueuedChild);
    const { isLost } = this;
    const { text, label, tooltip } = describe({
      working: working.filter((child) => !queued.includes(child)),
      queued,
      requests,
      waiting: waiting.size,
      isLost,
      today,
    });
    if (text === "" || this.shown === label + tooltip.value) return;
    this.shown = label + tooltip.value;
    const isAsked = requests.length > 0 && !isLost;
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label };
    this.item.backgroundColor = isAsked
      ? new vscode.ThemeColor("statusBarItem.warningBackground")
      : undefined;
    this.item.command = isAsked ? "asyncagents.answer" : SHOW_ACTIVE;
    this.item.show();
  }
}

/** Whether the connection of a folder is in one of these states; undefined counts as disconnected. */
function isIn(folder: Folder | undefined, ...kinds: readonly ConnectionState["kind"][]): boolean {
  return kinds.includes(folder?.connector.state.kind ?? "disconnected");
}
