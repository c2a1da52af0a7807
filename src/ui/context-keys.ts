import * as vscode from "vscode";

/** A step of the walkthrough. */
export type FirstStep = "connect" | "launch" | "resume" | "agentTools";

/** Values for the `when` clauses of the manifest, by the names used there without `asyncagents.`. */
interface ContextValues extends Record<`firstSteps.${FirstStep}`, boolean> {
  /** The walkthrough was opened in this window. */
  "firstSteps.shown": boolean;
  /** `state`, `failure` and `ownServer` refer to the current folder. */
  state: "noFolder" | "untrusted" | "disconnected" | "connecting" | "connected" | "reconnecting" | "failed";
  failure: string | undefined;
  /** At least one folder is connected. */
  connected: boolean;
  ownServer: boolean;
  /** The active sessions have tasks. */
  hasTasks: boolean;
  /** Any session has a task or subagent that isn't cleared. */
  hasAnyTasks: boolean;
  hasFinished: boolean;
  hasCleared: boolean;
  /** There are results that the user has not opened yet. */
  hasUnread: boolean;
  /** There are such results, or requests that wait for the user. */
  hasNext: boolean;
  filtered: boolean;
  filterHidesAll: boolean;
  /** At least one of the selected rows is running, has an answer, is a listed task, is a subagent. */
  selectionActive: boolean;
  selectionAnswered: boolean;
  selectionTasks: boolean;
  selectionSubagents: boolean;
  /** Whether a text editor is active, as opposed to a webview, an image or the settings. */
  textEditor: boolean;
  /** The addresses of the documents in which prompts are written. */
  promptEditors: readonly string[];
  /** The addresses of the prompt documents that launch new tasks. */
  launchEditors: readonly string[];
  /** Whether changes of a task are listed for review. */
  reviewing: boolean;
  /**
   * The paths of the files that diff editors under review show as modified; addresses would differ in a remote window.
   */
  reviewedFiles: readonly string[];
}

/** Sets the editor's context keys, each only when its value changes. */
export class ContextKeys {
  private readonly values = new Map<keyof ContextValues, unknown>();

  set<K extends keyof ContextValues>(key: K, value: ContextValues[K]): void {
    if (this.values.has(key) && this.values.get(key) === value) return;
    this.values.set(key, value);
    void vscode.commands.executeCommand("setContext", `asyncagents.${key}`, value);
  }
}
