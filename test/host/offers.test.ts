import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { ConnectionState } from "../../src/engine/connection.ts";
import { Refusal } from "../../src/engine/errors.ts";
import { Emitter } from "../../src/engine/event.ts";
import type { Refused } from "../../src/engine/folder-changes.ts";
import { sentence } from "../../src/engine/sentence.ts";
import type { Folder } from "../../src/ui/folders/folders.ts";
import { Notifications } from "../../src/ui/notifications.ts";
import { warnOfUntestedVersions } from "../../src/ui/server-warnings.ts";
import type { NotificationContext } from "../../src/ui/task-notifications.ts";
import { withRemedy } from "../../src/ui/worktrees/isolated-task.ts";
import { until } from "../support/wait.ts";
import { MemoryMemento } from "./memory-parts.ts";

const fail = (error: unknown): never => {
  throw error;
};

/** Warnings with buttons, of which a user takes one. */
describe("what a warning offers", () => {
  const { showWarningMessage } = vscode.window;
  /** The texts that were shown, with that of their details. */
  let shown: string[];
  /** The button to take, of those that are there. */
  let taken: string | undefined;

  beforeEach(() => {
    shown = [];
    taken = undefined;
    vscode.window.showWarningMessage = async (text: string, ...more: readonly unknown[]) => {
      const [options] = more as readonly (vscode.MessageOptions | string)[];
      shown.push(typeof options === "object" ? `${text} ${options.detail ?? ""}` : text);
      return more.find((one) => one === taken) as never;
    };
  });

  afterEach(() => Object.assign(vscode.window, { showWarningMessage }));

  describe("of a version of OpenCode", () => {
    const changes = new Emitter<void>(fail);
    let state: ConnectionState;
    let memory: MemoryMemento;

    const folders = {
      follow: (open: (folder: Folder) => vscode.Disposable) =>
        open({
          connector: {
            get state() {
              return state;
            },
            onDidChange: changes.event,
          },
        } as unknown as Folder),
    };

    beforeEach(() => (memory = new MemoryMemento()));

    /** Connects a new window to this version. */
    function connect(version: string, isUntested = true): void {
      state = {
        kind: "connected",
        url: "http://127.0.0.1:1",
        version,
        own: true,
        ...(isUntested && { isUntested }),
      };
      const warnings = warnOfUntestedVersions(folders, memory);
      changes.fire();
      warnings.dispose();
    }

    it("comes once for each release line that was not tested", () => {
      for (const version of ["1.19.6", "1.19.6", "1.19.7", "1.20.0", "1.19.6"]) connect(version);
      connect("1.18.1", false);
      assert.deepEqual(
        shown.map((text) => /with OpenCode (\d+\.\d+\.\d+)/.exec(text)?.[1]),
        ["1.19.6", "1.20.0"],
      );
    });

    it("leads to the tested versions", async () => {
      taken = "Show Tested Versions";
      connect("1.19.6");
      const isShown = (): boolean =>
        vscode.window.tabGroups.all.some(({ tabs }) =>
          tabs.some(({ input }) => input instanceof vscode.TabInputWebview),
        );
      await until("the page", isShown);
      await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    });
  });

  describe("of a setup command that isn't allowed", () => {
    let allowed: string[];
    let command: string | undefined;

    const folder = {
      name: "shop",
      settings: { setupCommand: () => command },
      allowSetup: async (text: string) => void allowed.push(text),
    } as unknown as Folder;

    beforeEach(() => {
      allowed = [];
      command = "touch ready.txt";
    });

    it("[ISO-2] is to allow it, each time an agent was refused, after a question that names it", async () => {
      const refusals = new Emitter<Refused>(fail);
      const none = new Emitter<never>(fail).event;
      const known = { onDidChange: none, onDidWarn: none, onDidRefuse: refusals.event };
      const notifications = new Notifications({
        known,
        folders: { of: (id: string) => (id === "ses_agent" ? folder : undefined) },
        notifyUser: () => "failures",
      } as unknown as NotificationContext);
      try {
        refusals.fire({ kind: "setup", sessionID: "ses_agent" });
        await until("the warning", () => shown.length === 1);
        assert.match(shown[0] ?? "", /because the setup command isn't allowed/);
        taken = "Allow Setup Command…";
        await until("another one", () => {
          refusals.fire({ kind: "setup", sessionID: "ses_agent" });
          return shown.some((text) => /^Allow this command to run .* of shop\? touch ready\.txt/.test(text));
        });
        assert.deepEqual(allowed, []);
      } finally {
        notifications.dispose();
      }
    });

    it("[ISO-2] is asked for the command of the settings, after which the launch goes on", async () => {
      let calls = 0;
      const call = async (): Promise<string> => {
        calls++;
        if (allowed.at(-1) === command) return "launched";
        throw new Refusal("setup-not-allowed", sentence("The setup command isn't allowed yet: {0}", "x"));
      };
      await assert.rejects(withRemedy(folder, "ses_one", call), /isn't allowed yet/);
      taken = "Allow";
      assert.equal(await withRemedy(folder, "ses_one", call), "launched");
      command = "npm ci";
      assert.equal(await withRemedy(folder, "ses_one", call), "launched");
      assert.deepEqual([allowed, calls], [["touch ready.txt", "npm ci"], 5]);
      assert.deepEqual(
        shown.map((text) => text.split("\n")[0]),
        ["touch ready.txt", "touch ready.txt", "npm ci"].map(
          (each) => `Allow this command to run in each new worktree of shop? ${each}`,
        ),
      );
    });
  });
});
