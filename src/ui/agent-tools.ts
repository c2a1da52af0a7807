import * as vscode from "vscode";
import { TOOL_NAMES, type ToolName } from "../tools/tool.ts";
import type { EditorTool, EditorToolContext } from "./editor-tool.ts";
import type { Settings } from "./settings.ts";

/** Registers the agent tools with VS Code's own agents while the settings enable them. */
export class AgentTools implements vscode.Disposable {
  private registered: vscode.Disposable | undefined;
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly context: EditorToolContext,
    private readonly settings: Settings,
  ) {
    this.subscription = settings.onDidChange(() => this.update(), "agentTools");
    this.update();
  }

  dispose(): void {
    this.subscription.dispose();
    this.registered?.dispose();
  }

  private update(): void {
    this.registered?.dispose();
    this.registered = this.settings.agentToolsEnabled()
      ? vscode.Disposable.from(...TOOL_NAMES.map((name) => vscode.lm.registerTool(name, this.tool(name))))
      : undefined;
  }

  /** The implementation of a tool is loaded on its first call. */
  private tool(name: ToolName): vscode.LanguageModelTool<object> {
    let loaded: Promise<EditorTool> | undefined;
    const load = (): Promise<EditorTool> =>
      (loaded ??= import("./later.ts").then(({ EditorTool }) => new EditorTool(name, this.context)));
    return {
      prepareInvocation: async (options) => (await load()).prepareInvocation(options),
      invoke: async (options, token) => (await load()).invoke(options, token),
    };
  }
}
