import * as vscode from "vscode";
import { withoutLinks } from "./plain-text.ts";
import { enumerate, translate } from "./translate.ts";
import { newsWords, type News } from "./while-away.ts";

export interface NewsContext {
  /** The folder's name, where there are several. */
  readonly folderName: string | undefined;
  readonly showTasks: () => void;
}

/** Tells in one what happened while no window had the folder open. */
export async function tellNews({ folderName, showTasks }: NewsContext, news: News): Promise<void> {
  const words = enumerate(newsWords(news).map(translate));
  const text =
    folderName === undefined
      ? vscode.l10n.t("While you were away: {0}", words)
      : vscode.l10n.t("While you were away from {0}: {1}", folderName, words);
  const show = vscode.l10n.t("Show");
  const { showWarningMessage, showInformationMessage } = vscode.window;
  const tell = news.failed + news.waiting > 0 ? showWarningMessage : showInformationMessage;
  if ((await tell(withoutLinks(text), show)) === show) showTasks();
}
