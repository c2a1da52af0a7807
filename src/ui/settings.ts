import * as vscode from "vscode";
import type { EngineSettings } from "../engine/engine.ts";
import type { ModelRef } from "../engine/task.ts";

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
      notifyParent: vscode.workspace.getConfiguration(SECTION).get("notifyParent", true),
    };
  }

  server(): { url: string | undefined; path: string | undefined; startTimeoutMs: number } {
    return {
      url: text("server.url"),
      path: text("server.path"),
      startTimeoutMs: seconds("server.startTimeout", 120, 5),
    };
  }

  notifyUser(): NotifyUser {
    return vscode.workspace.getConfiguration(SECTION).get("notifyUser", "always");
  }

  /** Calls back when a setting below `name` changes. */
  onDidChange(name: string, callback: () => void): vscode.Disposable {
    return vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.${name}`)) callback();
    });
  }
}

/** `provider/model`; undefined for anything else. The model's own name may hold further slashes. */
export function parseModel(text: string | undefined): ModelRef | undefined {
  const match = text?.match(/^([^/\s]+)\/(\S+)$/);
  return match?.[1] !== undefined && match[2] !== undefined
    ? { providerID: match[1], modelID: match[2] }
    : undefined;
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
