import assert from "node:assert/strict";
import * as vscode from "vscode";
import { pickOne } from "../../src/ui/quick-input.ts";
import { until } from "../support/wait.ts";

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
});
