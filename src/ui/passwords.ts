import type * as vscode from "vscode";

/** Passwords of servers that people run themselves, kept in the editor's secret storage by address. */
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
