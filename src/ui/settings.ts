import * as vscode from "vscode";
import type { Budget } from "../engine/limit.ts";
import type { EngineSettings } from "../engine/engine.ts";
import type { IsolationSettings } from "../engine/settings.ts";
import type { ModelRef } from "../engine/task.ts";
import { parseModel } from "../engine/model-ref.ts";
import type { FolderSettings } from "../rpc/contract.ts";

const SECTION = "asyncagents";
/** The editor's setting for ignored files to copy into worktrees. */
const INCLUDED = "git.worktreeIncludeFiles";
/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** When VS Code notifies the user about tasks that they launched. */
export type NotifyUser = "always" | "failures" | "never";

/** The settings in internal units: milliseconds, and undefined for empty values. Read again at each call. */
export class Settings {
  /** @param folder the folder whose settings to read; by default the window's */
  constructor(private readonly folder?: vscode.Uri) {}

  /** @param allowedSetup the setup command that the user has allowed */
  engine(allowedSetup?: string): EngineSettings {
    return {
      pollInterval: this.time("pollInterval", 5, 1),
      stallWarning: this.time("stallWarning", 120, 0),
      defaultAgent: this.text("defaultAgent"),
      defaultModel: givenModel(this.text("defaultModel")),
      maxConcurrentTasks: Math.floor(this.number("maxConcurrentTasks", 5, 0)),
      maxDepth: Math.floor(this.number("maxDepth", 1, 0)),
      fork: {
        // The engine refuses invalid limits where they are used, with an error that names the setting.
        maxToolResultChars: this.value("fork.maxToolResultChars", 1_500),
        maxTokens: this.value("fork.maxTokens", 100_000),
        strategy: strategy(this.value<string>("fork.strategy", "auto")),
      },
      notifyParent: this.value<unknown>("notifyParent", true) !== false,
      collisions: collisions(this.value<string>("collisions", "block")),
      isolation: this.isolation(allowedSetup),
      // These limits, too.
      budget: this.budget(),
    };
  }

  /** Program and address come only from the user's settings, because a workspace's settings could name anything. */
  server(): FolderSettings["server"] {
    return {
      url: this.usersText("server.url"),
      path: this.usersText("server.path"),
      startTimeoutMs: this.time("server.startTimeout", 120, 5),
      ownDatabase: this.usersValue("server.ownDatabase") === true,
    };
  }

  notifyUser(): NotifyUser {
    return this.value<NotifyUser>("notifyUser", "always");
  }

  /** Whether agents get the tools. */
  agentToolsEnabled(): boolean {
    return this.value<unknown>("agentTools.enabled", true) !== false;
  }

  /** How long work continues after the last window has closed, in milliseconds; 0 ends it soon. */
  keepWorking(): number {
    return this.number("keepWorking", 12, 0) * 3_600_000;
  }

  /** Calls back when a setting changes; if there is a name, only when one under it does. */
  onDidChange(callback: () => void, name?: string): vscode.Disposable {
    return vscode.workspace.onDidChangeConfiguration((event) => {
      const sections = name === undefined ? [SECTION, INCLUDED] : [`${SECTION}.${name}`];
      if (sections.some((section) => event.affectsConfiguration(section, this.folder))) callback();
    });
  }

  /** What to run in new worktrees. Undefined if nothing. */
  setupCommand(): string | undefined {
    return this.text("isolation.setup");
  }

  private isolation(allowedSetup: string | undefined): IsolationSettings {
    const command = this.setupCommand();
    const startFrom = this.value<string>("isolation.startFrom", "whatYouSee");
    return {
      default: this.value<string>("isolation.default", "folder") === "worktree" ? "worktree" : "folder",
      location: this.text("isolation.location"),
      startFrom: startFrom === "head" ? "head" : "whatYouSee",
      include: patterns(vscode.workspace.getConfiguration(undefined, this.folder).get<unknown>(INCLUDED)),
      setup:
        command === undefined
          ? undefined
          : {
              command,
              isAllowed: command === allowedSetup,
              timeout: this.time("isolation.setupTimeout", 10, 0.1, 60_000),
            },
    };
  }

  private budget(): Budget {
    const value = this.value<unknown>("budget", undefined);
    return typeof value === "object" && value !== null ? value : {};
  }

  private value<T>(name: string, fallback: T): T {
    return vscode.workspace.getConfiguration(SECTION, this.folder).get(name, fallback);
  }

  private text(name: string): string | undefined {
    return textIn(this.value<unknown>(name, undefined));
  }

  private usersText(name: string): string | undefined {
    return textIn(this.usersValue(name));
  }

  private usersValue(name: string): unknown {
    return vscode.workspace.getConfiguration(SECTION, this.folder).inspect(name)?.globalValue;
  }

  /** VS Code doesn't enforce a setting's type or limits in JSON. */
  private number(name: string, fallback: number, minimum: number): number {
    const value = this.value<unknown>(name, undefined);
    return typeof value === "number" && Number.isFinite(value) ? Math.max(value, minimum) : fallback;
  }

  /** A time in milliseconds for which a timer can be set. The setting is in seconds or, if given, this unit. */
  private time(name: string, fallback: number, minimum: number, unitMs = 1_000): number {
    return Math.min(this.number(name, fallback, minimum) * unitMs, LONGEST_TIMER_MS);
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** The texts of a list in the settings. */
function patterns(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function collisions(value: string): EngineSettings["collisions"] {
  return value === "warn" || value === "off" ? value : "block";
}

function strategy(value: string): EngineSettings["fork"]["strategy"] {
  return value === "fork" || value === "replay" ? value : "auto";
}

/** The current settings of a folder for the daemon. */
export async function folderSettings(
  settings: Settings,
  state: { readonly allowedSetup: string | undefined },
  passwords: PasswordStore,
  isWatched: () => boolean,
): Promise<FolderSettings> {
  const { url } = settings.server();
  const password = url === undefined ? undefined : await passwords.get(url);
  // Read after the password, which takes a while, so that the values are current when this resolves.
  return {
    engine: settings.engine(state.allowedSetup),
    server: settings.server(),
    password,
    agentTools: settings.agentToolsEnabled(),
    keepWorkingMs: settings.keepWorking(),
    watched: isWatched(),
  };
}

/** Passwords of servers that users run themselves, kept in the editor's secret storage by address. */
export class PasswordStore {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  async get(url: string): Promise<string | undefined> {
    return this.secrets.get(key(url));
  }

  async set(url: string, password: string): Promise<void> {
    await this.secrets.store(key(url), password);
  }
}

function key(url: string): string {
  return `server-password:${url}`;
}

/** A text that isn't a model is kept, so that a launch is refused with it. */
function givenModel(text: string | undefined): ModelRef | undefined {
  return parseModel(text) ?? (text === undefined ? undefined : { providerID: text, modelID: "" });
}
