import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { ProgramCall } from "../../engine/connection.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import { title } from "../plain-text.ts";
import type { Command } from "./command.ts";
import { connectFor, pickChild } from "./pick-task.ts";

export const openInTerminal: Command = {
  isAboutTask: true,
  async run(context, argument) {
    await connectFor(context, argument);
    const child = await pickChild(context, argument, {
      title: vscode.l10n.t("Open in Terminal"),
    });
    if (!child) return undefined;
    const folder = await connectedFolder(context.folders, context.folders.of(child.id));
    const call = await folder.calls.attachCommand(child.id);
    const open = vscode.window.terminals.find((terminal) => isRunning(terminal, call));
    const terminal = open ?? createTerminal(vscode.l10n.t("OpenCode: {0}", title(child.description)), call);
    terminal.show();
    return child;
  },
};

function createTerminal(name: string, { executable, args, directory, env }: ProgramCall): vscode.Terminal {
  return vscode.window.createTerminal({
    name,
    iconPath: new vscode.ThemeIcon("terminal"),
    shellPath: executable,
    shellArgs: [...args],
    cwd: directory,
    env: { ...env },
    // What the editor would keep of it over a restart includes its environment.
    isTransient: true,
  });
}

/** Whether this terminal runs just that: one of a server that has moved since is of no use. */
function isRunning({ creationOptions, exitStatus }: vscode.Terminal, { args }: ProgramCall): boolean {
  return (
    exitStatus === undefined &&
    "shellArgs" in creationOptions &&
    isDeepStrictEqual(creationOptions.shellArgs, args)
  );
}
