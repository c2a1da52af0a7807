import assert from "node:assert/strict";
import * as vscode from "vscode";
import { configureAgentTools } from "../../src/ui/commands/set-up.ts";
import { until } from "../support/wait.ts";

type Context = Parameters<typeof configureAgentTools>[0];

describe("the command that adds the agent tools to a configuration", () => {
  const { showQuickPick, showInformationMessage } = vscode.window;
  const path = "/home/me/opencode.jsonc";
  const entry = '["file:///opencode-plugin.js"]';
  /** The choice of the list, by a part of its label. */
  let chosen: string | undefined;
  /** The button of the question that the user takes. */
  let taken: string | undefined;
  let plan: { readonly before: string | undefined; readonly after: string } | undefined;
  let asked: string[];
  let applied: unknown[];
  let isFinished: boolean;

  const calls = {
    planAgentTools: async () => plan && { ...plan, path, entry },
    applyAgentTools: async (edit: unknown) => void applied.push(edit),
  };
  const folder = { settings: { agentToolsEnabled: () => true }, open: async () => calls };
  const context = {
    folders: { all: [folder], current: folder },
    firstSteps: { finish: () => (isFinished = true) },
  } as unknown as Context;

  beforeEach(() => {
    [chosen, taken, plan, asked, applied, isFinished] = [undefined, undefined, undefined, [], [], false];
    Object.assign(vscode.window, {
      showQuickPick: async (items: readonly vscode.QuickPickItem[]) =>
        chosen === undefined ? undefined : items.find(({ label }) => label.includes(chosen ?? "")),
      showInformationMessage: async (text: string, ...more: readonly unknown[]) => {
        const [options] = more as readonly (vscode.MessageOptions | string)[];
        asked.push(typeof options === "object" ? `${text} ${options.detail ?? ""}` : text);
        return more.find((one) => one === taken);
      },
    });
  });

  afterEach(() => Object.assign(vscode.window, { showQuickPick, showInformationMessage }));

  it("changes nothing if the user cancels the list or the question, which shows file and entry", async () => {
    plan = { before: "{}", after: "{ }" };
    await configureAgentTools(context);
    assert.equal(asked.length, 0);
    chosen = "Add to This Folder";
    await configureAgentTools(context);
    assert.equal(asked.length, 1);
    assert.ok(asked[0]?.startsWith(`Add the agent tools to ${path}?`) && asked[0].endsWith(entry), asked[0]);
    assert.deepEqual([applied, isFinished], [[], false]);
  });

  it("asks nothing in a workspace that isn't trusted", async () => {
    const trust = Object.getOwnPropertyDescriptor(vscode.workspace, "isTrusted") ?? assert.fail();
    Object.defineProperty(vscode.workspace, "isTrusted", { ...trust, get: () => false });
    chosen = "Add to This Folder";
    try {
      await assert.rejects(configureAgentTools(context), /isn't trusted/);
      assert.deepEqual([asked, applied], [[], []]);
    } finally {
      Object.defineProperty(vscode.workspace, "isTrusted", trust);
    }
  });

  it("creates a configuration that doesn't exist, which the question says", async () => {
    plan = { before: undefined, after: "{ }" };
    [chosen, taken] = ["Add to All Folders", "Add"];
    await configureAgentTools(context);
    await until("the report", () => asked.length === 2);
    assert.ok(asked[0]?.startsWith(`Create ${path} with the agent tools?`), asked[0]);
    assert.ok(asked[1]?.startsWith(`Added the agent tools to ${path}.`), asked[1]);
    assert.deepEqual([applied.length, isFinished], [1, true]);
  });

  it("leaves tools that are there as they are, and says when there are none to remove", async () => {
    plan = { before: "{}", after: "{}" };
    chosen = "Add to This Folder";
    await configureAgentTools(context);
    for (plan of [plan, undefined]) {
      chosen = "Remove from All Folders";
      await configureAgentTools(context);
    }
    const none = "The agent tools aren't in this configuration.";
    assert.deepEqual(asked, [`The agent tools are already in ${path}.`, none, none]);
    assert.deepEqual([applied, isFinished], [[], false]);
  });
});
