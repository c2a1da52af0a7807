import type * as vscode from "vscode";
import type { FolderSettings } from "../../rpc/contract.ts";
import type { Settings } from "../settings.ts";

/** The current settings of a folder for the daemon. */
export async function folderSettings(
  settings: Settings,
  passwords: PasswordStore,
  isWatched: () => boolean,
): Promise<FolderSettings> {
  const { url } = settings.server();
  const password = url === undefined ? undefined : await passwords.get(url);
  // Read after the password, which takes a while, so that the values are current when this resolves.
  return {
    engine: settings.engine(),
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
