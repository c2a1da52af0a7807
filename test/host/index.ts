import Mocha from "mocha";
import * as vscode from "vscode";
import { until } from "../support/wait.ts";
import ResultReporter from "../support/reporter.ts";
import { hostVariables } from "./variables.ts";

/** Runs the tests inside the extension host. Rejects when one fails. */
export async function run(): Promise<void> {
  const grep = process.env[hostVariables.grep];
  const mocha = new Mocha({
    ui: "bdd",
    color: false,
    timeout: 60_000,
    reporter: ResultReporter,
    reporterOptions: { suite: "host", directory: process.env[hostVariables.results] },
    ...(grep ? { grep } : {}),
  });
  mocha.rootHooks({ beforeEach: tidy });
  mocha.addFile(process.env[hostVariables.tests] ?? "");
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) throw new Error(`${failures} failed`);
}

/** Every test begins without a quick input and without unsaved text, whatever the previous test left. */
async function tidy(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.closeQuickOpen");
  for (const { input, isDirty } of vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs)) {
    if (!isDirty || !(input instanceof vscode.TabInputText)) continue;
    await vscode.window.showTextDocument(input.uri);
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    // Until it is closed, a new untitled document can get its name, and then its text.
    const uri = input.uri.toString();
    await until("the closed document to be gone", () =>
      vscode.workspace.textDocuments.every((each) => each.uri.toString() !== uri),
    );
  }
}
