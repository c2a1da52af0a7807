import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { ProgramCall } from "../../engine/connection.ts";
import { title } from "../plain-text.ts";
import type { TaskContext } from "./command.ts";
import { pickConnected } from "./pick-task.ts";

export async function openInTerminal(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickConnected(context, argument, { title: vscode.l10n.t("Open in Terminal") });
  if (!picked) return;
  const { child, folder } = picked;
  const call = await folder.calls.attachCommand(child.id);
  const open = vscode.window.terminals.find((terminal) => isRunning(terminal, call));
  const terminal = open ?? createTerminal(vscode.l10n.t("OpenCode: {0}", title(child.description)), call);
  terminal.show();
}

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
