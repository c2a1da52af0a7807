import * as vscode from "vscode";
import { TOOL_NAMES, type ToolName } from "../tools/tool.ts";
import type { EditorTool, EditorToolContext } from "./editor-tool.ts";
import type { Settings } from "./settings.ts";
import { loadLater } from "./load-later.ts";

/**
 * Registers the agent tools with VS Code's own agents. The editor activates the extension for a call, and then looks for
 * the tool at once, so they are registered before the settings are read.
 */
export class AgentTools implements vscode.Disposable {
  private registered: vscode.Disposable | undefined;

  constructor(private readonly context: EditorToolContext) {
    this.register();
  }

  /** From now on, the tools are registered only while the settings enable them. */
  follow(settings: Settings): vscode.Disposable {
    const update = (): void => {
      if (!settings.agentToolsEnabled()) this.dispose();
      else if (!this.registered) this.register();
    };
    update();
    return settings.onDidChange(update, "agentTools");
  }

  dispose(): void {
    this.registered?.dispose();
    this.registered = undefined;
  }

  private register(): void {
    const registered = TOOL_NAMES.map((name) => vscode.lm.registerTool(name, this.tool(name)));
    this.registered = vscode.Disposable.from(...registered);
  }

  /** The implementation of a tool is loaded on its first call. */
  private tool(name: ToolName): vscode.LanguageModelTool<object> {
    let loaded: Promise<EditorTool> | undefined;
    const load = (): Promise<EditorTool> =>
      (loaded ??= loadLater().then(({ EditorTool }) => new EditorTool(name, this.context)));
    return {
      prepareInvocation: async (options) => (await load()).prepareInvocation(options),
      invoke: async (options, token) => (await load()).invoke(options, token),
    };
  }
}
