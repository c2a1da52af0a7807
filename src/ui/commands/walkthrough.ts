import * as vscode from "vscode";
import type { Command } from "./command.ts";

const WALKTHROUGH = "async-agents.opencode-async-agents#firstSteps";

export const openWalkthrough: Command = {
  run: async ({ firstSteps }) => {
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH, false);
    firstSteps.shown();
  },
};
