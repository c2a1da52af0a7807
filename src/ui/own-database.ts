import * as vscode from "vscode";
import type { Disposable } from "../engine/event.ts";
import type { Folders } from "./folders/folders.ts";
import { withoutLinks } from "./plain-text.ts";

const OFFERED = "asyncagents.offeredOwnDatabase";

/** Offers once on this machine a database of the extension's own, if an OpenCode 2 uses the same one. */
export function offerOwnDatabase(folders: Pick<Folders, "follow">, state: vscode.Memento): Disposable {
  return folders.follow(({ connector }) =>
    connector.onDidChange(() => {
      const { state: now } = connector;
      if (now.kind !== "connected" || !now.sharesDatabase || state.get(OFFERED)) return;
      void state.update(OFFERED, true);
      void offer();
    }),
  );
}

async function offer(): Promise<void> {
  const use = vscode.l10n.t("Use Own Database");
  const explain = vscode.l10n.t("Learn More");
  const text = vscode.l10n.t(
    "OpenCode 2 is installed and shares its database with Async Agents. A separate database begins empty: existing tasks stay in the shared one, and running tasks are stopped.",
  );
  const choice = await vscode.window.showInformationMessage(withoutLinks(text), use, explain);
  if (choice === explain) await vscode.commands.executeCommand("_asyncagents.explainOpenCode2");
  if (choice !== use) return;
  const configuration = vscode.workspace.getConfiguration("asyncagents");
  await configuration.update("server.ownDatabase", true, vscode.ConfigurationTarget.Global);
}
