import * as vscode from "vscode";
import type { Budget } from "../engine/ceiling.ts";
import type { EngineSettings } from "../engine/engine.ts";
import { parseModel } from "../engine/model-ref.ts";

const SECTION = "asyncagents";

/** When VS Code itself tells of a task that a person launched. */
export type NotifyUser = "always" | "failures" | "never";

/** The settings as the parts want them: milliseconds, and undefined for what is left empty. Read at each call. */
export class Settings {
  engine(): EngineSettings {
    return {
      pollInterval: seconds("pollInterval", 5, 1),
      stallWarning: seconds("stallWarning", 120, 0),
      defaultAgent: text("defaultAgent"),
      defaultModel: parseModel(text("defaultModel")),
      maxConcurrentTasks: Math.floor(number("maxConcurrentTasks", 5, 0)),
      maxDepth: Math.floor(number("maxDepth", 1, 0)),
      fork: {
        // Limits that make no sense are refused where a fork is launched, with a sentence that names them.
        maxToolResultChars: this.value("fork.maxToolResultChars", 1_500),
        maxTokens: this.value("fork.maxTokens", 100_000),
        strategy: strategy(this.value<string>("fork.strategy", "auto")),
      },
      notifyParent: vscode.workspace.getConfiguration(SECTION).get("notifyParent", true),
      // A ceiling that makes no sense is refused where a task is launched, too.
      budget: this.value<Budget>("budget", {}),
    };
  }

  server(): { url: string | undefined; path: string | undefined; startTimeoutMs: number } {
    return {
      url: text("server.url"),
      path: text("server.path"),
      startTimeoutMs: seconds("server.startTimeout", 120, 5),
    };
  }

  private value<T>(name: string, fallback: T): T {
    return vscode.workspace.getConfiguration(SECTION).get(name, fallback);
  }

  notifyUser(): NotifyUser {
    return vscode.workspace.getConfiguration(SECTION).get("notifyUser", "always");
  }

  /** Whether agents are given the tools. */
  agentToolsEnabled(): boolean {
    return vscode.workspace.getConfiguration(SECTION).get<unknown>("agentTools.enabled") !== false;
  }

  /** Calls back when a setting below `name` changes. */
  onDidChange(name: string, callback: () => void): vscode.Disposable {
    return vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.${name}`)) callback();
    });
  }
}

function strategy(value: string): EngineSettings["fork"]["strategy"] {
  return value === "fork" || value === "replay" ? value : "auto";
}

function text(name: string): string | undefined {
  const value = vscode.workspace.getConfiguration(SECTION).get<unknown>(name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** The editor does not hold people to a setting's type or limits when they write JSON. */
function number(name: string, fallback: number, minimum: number): number {
  const value = vscode.workspace.getConfiguration(SECTION).get<unknown>(name);
  return typeof value === "number" && Number.isFinite(value) ? Math.max(value, minimum) : fallback;
}

/** In milliseconds. */
function seconds(name: string, fallback: number, minimum: number): number {
  return number(name, fallback, minimum) * 1000;
}
