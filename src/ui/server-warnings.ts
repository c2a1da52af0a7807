import * as vscode from "vscode";
import type { Disposable } from "../engine/event.ts";
import type { Folders } from "./folders/folders.ts";
import { withoutLinks } from "./plain-text.ts";
import { offerWarning } from "./dialogs.ts";

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
    "OpenCode 2 is installed and shares its database with Async Agents. A separate database starts out empty: existing tasks stay in the shared one, and running tasks are stopped.",
  );
  const choice = await vscode.window.showInformationMessage(withoutLinks(text), use, explain);
  if (choice === explain) await vscode.commands.executeCommand("_asyncagents.explainOpenCode2");
  if (choice !== use) return;
  const configuration = vscode.workspace.getConfiguration("asyncagents");
  await configuration.update("server.ownDatabase", true, vscode.ConfigurationTarget.Global);
}

const WARNED = "asyncagents.warnedVersions";

/** Warns once on this machine about each release line of OpenCode that the extension was not tested with. */
export function warnOfUntestedVersions(folders: Pick<Folders, "follow">, state: vscode.Memento): Disposable {
  return folders.follow(({ connector }) =>
    connector.onDidChange(() => {
      const { state: now } = connector;
      if (now.kind !== "connected" || !now.isUntested) return;
      const line = now.version.split(".").slice(0, 2).join(".");
      const warned = state.get<readonly string[]>(WARNED, []);
      if (warned.includes(line)) return;
      void state.update(WARNED, [...warned, line]);
      void warn(now.version);
    }),
  );
}

async function warn(version: string): Promise<void> {
  const show = vscode.l10n.t("Show Tested Versions");
  const text = vscode.l10n.t(
    "Async Agents wasn't tested with OpenCode {0}. If something doesn't work, a tested version may help.",
    version,
  );
  if (await offerWarning(text, show)) await vscode.commands.executeCommand("_asyncagents.explainOpenCode2");
}
