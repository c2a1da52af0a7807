import * as vscode from "vscode";

/** A step of the walkthrough. */
export type FirstStep = "connect" | "launch" | "resume" | "agentTools";

/** Facts that the manifest's `when` clauses ask for, by their names there. */
interface ContextValues extends Record<`asyncagents.firstSteps.${FirstStep}`, boolean> {
  /** The walkthrough was opened in this window. */
  "asyncagents.firstSteps.shown": boolean;
  /** Of the current folder, as is `failure` and `ownServer`. */
  "asyncagents.state":
    "noFolder" | "untrusted" | "disconnected" | "connecting" | "connected" | "reconnecting" | "failed";
  "asyncagents.failure": string | undefined;
  /** One folder at least. */
  "asyncagents.connected": boolean;
  "asyncagents.ownServer": boolean;
  "asyncagents.hasTasks": boolean;
  "asyncagents.hasFinished": boolean;
  "asyncagents.filtered": boolean;
  "asyncagents.filterHidesAll": boolean;
  /** Of the selected rows one at least is at work, has an answer, is a task. */
  "asyncagents.selectionActive": boolean;
  "asyncagents.selectionAnswered": boolean;
  "asyncagents.selectionTasks": boolean;
  "asyncagents.selectionSubagents": boolean;
  /** Whether a text editor is active; a page, a picture or the settings in an editor's place is none. */
  "asyncagents.textEditor": boolean;
  /** The addresses of the documents in which prompts are written. */
  "asyncagents.promptEditors": readonly string[];
  /** Those of them whose prompts are for new tasks. */
  "asyncagents.launchEditors": readonly string[];
  /** Whether changes of a task wait to be reviewed. */
  "asyncagents.reviewing": boolean;
  /** The paths of what the diff editors of those changes show as modified; addresses differ in a remote window. */
  "asyncagents.reviewedFiles": readonly string[];
}

/** Sets the editor's context keys, each only when its value changes. */
export class ContextKeys {
  private readonly values = new Map<keyof ContextValues, unknown>();

  set<K extends keyof ContextValues>(key: K, value: ContextValues[K]): void {
    if (this.values.has(key) && this.values.get(key) === value) return;
    this.values.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}
