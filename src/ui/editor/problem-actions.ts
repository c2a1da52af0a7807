import * as vscode from "vscode";

/** Offers to launch an agent wherever the editor offers quick fixes: in the light bulb and in the Problems view. */
export function offerProblemActions(): vscode.Disposable {
  return vscode.languages.registerCodeActionsProvider(
    [{ scheme: "file" }, { scheme: "untitled" }],
    { provideCodeActions: problemActions },
    { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] },
  );
}

function problemActions(
  { uri }: vscode.TextDocument,
  _range: vscode.Range,
  { diagnostics }: vscode.CodeActionContext,
): vscode.CodeAction[] {
  if (diagnostics.length === 0 || !vscode.workspace.isTrusted) return [];
  const title =
    diagnostics.length === 1
      ? vscode.l10n.t("Launch Agent on This Problem…")
      : vscode.l10n.t("Launch Agent on These {0} Problems…", diagnostics.length);
  const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
  action.diagnostics = [...diagnostics];
  action.command = { title, command: "asyncagents.launchOn", arguments: ["problem", uri, diagnostics] };
  return [action];
}
