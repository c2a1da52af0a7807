import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { FolderSettings } from "../../src/rpc/contract.ts";
import { folderSettings, PasswordStore, Settings } from "../../src/ui/settings.ts";

describe("what a window tells the daemon of its settings", () => {
  const changed = new Set<string>();

  async function set(name: string, value: unknown): Promise<void> {
    changed.add(name);
    await vscode.workspace.getConfiguration("asyncagents").update(name, value, true);
  }

  afterEach(async () => {
    for (const name of changed) await set(name, undefined);
  });

  const told = (allowedSetup?: string): Promise<FolderSettings> =>
    folderSettings(
      new Settings(),
      { allowedSetup },
      new PasswordStore({ get: async () => undefined } as unknown as vscode.SecretStorage),
      () => true,
    );

  it("how long work continues without a window: 12 hours, or not at all", async () => {
    assert.equal((await told()).keepWorkingMs, 12 * 3_600_000);
    await set("keepWorking", 0);
    assert.equal((await told()).keepWorkingMs, 0);
  });

  it("how long a server may take to start", async () => {
    await set("server.startTimeout", 5);
    assert.equal((await told()).server.startTimeoutMs, 5_000);
  });

  it("what happens when two tasks change the same file", async () => {
    const collisions = async (): Promise<string> => (await told()).engine.collisions;
    assert.equal(await collisions(), "block");
    for (const value of ["warn", "off"]) {
      await set("collisions", value);
      assert.equal(await collisions(), value);
    }
  });

  it("when a setting of its own changes, or the editor's for files in worktrees, and no other", async () => {
    let told = 0;
    const following = new Settings().onDidChange(() => told++);
    const update = async (name: string, value: unknown): Promise<number> => {
      await vscode.workspace.getConfiguration().update(name, value, true);
      return told;
    };
    try {
      assert.equal(await update("editor.tabSize", 3), 0);
      assert.equal(await update("git.worktreeIncludeFiles", [".env"]), 1);
      assert.equal(await update("asyncagents.keepWorking", 1), 2);
    } finally {
      following.dispose();
      for (const name of ["editor.tabSize", "git.worktreeIncludeFiles", "asyncagents.keepWorking"])
        await update(name, undefined);
    }
  });

  it("[ISO-2] the setup command, as allowed only if the user allowed this one", async () => {
    const isAllowed = async (allowed?: string): Promise<boolean | undefined> =>
      (await told(allowed)).engine.isolation.setup?.isAllowed;
    assert.equal(await isAllowed("npm ci"), undefined);
    await set("isolation.setup", "npm ci");
    assert.equal(await isAllowed(), false);
    assert.equal(await isAllowed("npm ci"), true);
    await set("isolation.setup", "npm ci; curl example.org");
    assert.equal(await isAllowed("npm ci"), false);
  });
});
