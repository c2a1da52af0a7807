import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { searchOutputs } from "../../src/ui/commands/list-commands.ts";
import { pickOne } from "../../src/ui/quick-input.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

describe("a question in a list", () => {
  const { createQuickPick } = vscode.window;
  let list: vscode.QuickPick<vscode.QuickPickItem>;

  before(() => {
    Object.assign(vscode.window, { createQuickPick: () => (list = createQuickPick()) });
  });

  after(() => {
    Object.assign(vscode.window, { createQuickPick });
  });

  it("takes the first answer, even if another one is given before the list closes", async () => {
    const items = [{ label: "First" }, { label: "Second" }];
    const answer = pickOne({ title: "Choose", placeholder: "One of these", items });
    await until("the list", () => list.activeItems[0]?.label === "First");
    const accepted: (string | undefined)[] = [];
    list.onDidAccept(() => accepted.push(list.selectedItems[0]?.label));
    await Promise.all(
      ["accept", "next", "accept"].map((what) => vscode.commands.executeCommand(`quickInput.${what}`)),
    );
    assert.deepEqual(await answer, { label: "First" });
    assert.deepEqual(accepted, ["First", "Second"]);
  });

  it("of what was found says how many conversations couldn't be searched", async () => {
    const child = record({});
    const failing = {
      known: {
        child: () => child,
        search: () => Promise.reject(new Error("The connection was lost.")),
      },
      folders: { all: [{ known: { sessions: () => [child] } }] },
      logger: { warn: () => undefined },
    } as unknown as CommandContext;
    const typed = new vscode.EventEmitter<string>();
    const nothing = new vscode.EventEmitter<never>().event;
    const writable = {
      title: "",
      onDidChangeValue: typed.event,
      onDidAccept: nothing,
      onDidHide: nothing,
      show: () => undefined,
    };
    const create = vscode.window.createQuickPick;
    Object.assign(vscode.window, { createQuickPick: () => writable });
    try {
      void searchOutputs(failing);
    } finally {
      Object.assign(vscode.window, { createQuickPick: create });
    }
    typed.fire("words");
    await until("the end", () => writable.title === "Search All Outputs: 1 Couldn't Be Read");
  });
});
