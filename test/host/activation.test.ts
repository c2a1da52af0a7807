import assert from "node:assert/strict";
import * as vscode from "vscode";
import { activate } from "../../src/extension.ts";
import { TOOL_NAMES } from "../../src/tools/tool.ts";
import { INTERNAL_COMMANDS } from "../../src/ui/commands/internal-commands.ts";

describe("activation", () => {
  const { extensionUri, packageJSON } =
    vscode.extensions.getExtension("async-agents.opencode-async-agents") ?? assert.fail();
  const { window, workspace, commands, lm } = vscode;
  const { createOutputChannel, registerWebviewPanelSerializer } = window;
  const { registerTextDocumentContentProvider } = workspace;
  const { registerCommand } = commands;
  const { registerTool } = lm;
  let registered: string[];
  let logged: string[];
  let context: { readonly subscriptions: vscode.Disposable[] };

  beforeEach(() => {
    [registered, logged] = [[], []];
    const register = (name: string): vscode.Disposable => {
      registered.push(name);
      return new vscode.Disposable(() => undefined);
    };
    const log = (message: string): void => void logged.push(message);
    const channel = { debug: log, info: log, warn: log, error: log, dispose: () => undefined };
    Object.assign(window, { createOutputChannel: () => channel, registerWebviewPanelSerializer: register });
    Object.assign(workspace, { registerTextDocumentContentProvider: register });
    Object.assign(commands, { registerCommand: register });
    Object.assign(lm, { registerTool: register });
    context = {
      subscriptions: [],
      ...{ extensionUri, extension: { packageJSON } },
      // The window needs it, and what exists from the start doesn't.
      get workspaceState() {
        throw new Error("There is no window.");
      },
    };
  });

  afterEach(() => {
    for (const each of context.subscriptions) each.dispose();
    Object.assign(window, { createOutputChannel, registerWebviewPanelSerializer });
    Object.assign(workspace, { registerTextDocumentContentProvider });
    Object.assign(commands, { registerCommand });
    Object.assign(lm, { registerTool });
  });

  it("creates at once what the editor asks for as soon as it has ended", () => {
    activate(context as unknown as vscode.ExtensionContext);
    const { contributes } = packageJSON as {
      readonly contributes: { readonly commands: readonly { readonly command: string }[] };
    };
    for (const name of [
      ...contributes.commands.map(({ command }) => command),
      ...INTERNAL_COMMANDS,
      ...TOOL_NAMES,
      ...["asyncagents.output", "asyncagents.overview", "asyncagents-text", "asyncagents-change"],
    ])
      assert.ok(registered.includes(name), name);
  });

  it("logs that a window couldn't be opened, and the API rejects what it can't do without one", async () => {
    const { ready, tasks, server } = activate(context as unknown as vscode.ExtensionContext);
    assert.deepEqual(tasks.list(), []);
    await assert.rejects(tasks.launch({ prompt: "Never" }), /There is no window/);
    await assert.rejects(tasks.cancel("none"), /There is no window/);
    await assert.rejects(tasks.wait("none"), /There is no window/);
    await assert.rejects(tasks.cancelBatch("none"), /There is no window/);
    await assert.rejects(server.connect(), /There is no window/);
    await assert.rejects(server.stop(), /There is no window/);
    await ready();
    assert.match(logged.join("\n"), /^Couldn't open the window\. Error: There is no window\./m);
  });
});
