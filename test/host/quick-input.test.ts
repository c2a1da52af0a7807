import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { CommandContext, TaskContext } from "../../src/ui/commands/command.ts";
import { filter, searchOutputs } from "../../src/ui/commands/list-commands.ts";
import { NO_FILTER } from "../../src/ui/tree/list-options.ts";
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

  it("of what was found can be answered while the search goes on, and keeps the active row at its end", async () => {
    const children = [record({ id: "ses_b", createdAt: 2 }), record({ id: "ses_a", createdAt: 1 })];
    const hits = ["first", "second", "third"].map((line, nth) => ({ entryID: "prt_1", nth, line }));
    let end = (_: readonly never[]): void => assert.fail("not yet searched");
    const shown: unknown[] = [];
    const context = {
      known: {
        child: (id: string) => children.find((one) => one.id === id),
        search: (id: string) =>
          id === "ses_b" ? Promise.resolve(hits) : new Promise((resolve) => (end = resolve)),
      },
      folders: { all: [{ known: { sessions: () => children } }] },
      panels: { showMatch: (id: string, { nth }: { nth: number }) => shown.push([id, nth]) },
      logger: { warn: assert.fail },
    } as unknown as CommandContext;
    const search = async (): Promise<void> => {
      await searchOutputs(context);
      list.value = "words";
      await until("the active row", () => list.activeItems[0]?.detail === "first");
    };
    await search();
    await vscode.commands.executeCommand("quickInput.accept");
    await until("its output", () => shown.length === 1);

    await search();
    await vscode.commands.executeCommand("quickInput.next");
    await until("the next row", () => list.activeItems[0]?.detail === "second");
    end([]);
    await until("the end", () => !list.busy);
    await vscode.commands.executeCommand("quickInput.accept");
    await until("its output", () => shown.length === 2);
    assert.deepEqual(shown, [
      ["ses_b", 0],
      ["ses_b", 1],
    ]);
  });

  it("of conditions leaves cleared tasks as they are while it doesn't offer them", async () => {
    const options = { filter: NO_FILTER, showsCleared: true };
    const known = { children: () => [], cleared: () => [] };
    const context = { known, folders: { sessionIDs: ["ses_1"] }, list: options } as unknown as TaskContext;
    const answered = filter(context);
    await until("the list", () => list.items.length > 0);
    list.value = "bug";
    await until("the filter", () => options.filter.text === "bug");
    await vscode.commands.executeCommand("quickInput.accept");
    await answered;
    assert.equal(options.showsCleared, true);
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
