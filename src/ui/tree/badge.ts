import * as vscode from "vscode";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import type { Task } from "../../engine/task.ts";
import { title } from "../plain-text.ts";

/** The number of requests that the badge's tooltip names. */
const NAMED_REQUESTS = 5;

/**
 * The badge with the number of requests that wait for the user, in all sessions of the folders; if there are none, with
 * the number of unread results.
 */
export function badge(
  requests: readonly OpenRequest<MirroredRequest>[],
  unread: readonly Task[],
): vscode.ViewBadge | undefined {
  const [first, ...others] = requests;
  const unreadWords = unreadTooltip(unread);
  if (!first) return unreadWords === "" ? undefined : { value: unread.length, tooltip: unreadWords };
  const heading =
    others.length === 0
      ? vscode.l10n.t("1 request waiting for you:")
      : vscode.l10n.t("{0} requests waiting for you:", requests.length);
  const names = requests.slice(0, NAMED_REQUESTS).map(({ request, child }) => {
    const what =
      request.type === "permission"
        ? vscode.l10n.t("permission {0}", title(request.permission))
        : vscode.l10n.t("a question");
    return `${title(child.description)} (${what})`;
  });
  const more =
    requests.length > names.length ? [vscode.l10n.t("and {0} more", requests.length - names.length)] : [];
  return {
    value: requests.length,
    tooltip: [heading, ...names, ...more, unreadWords].filter(Boolean).join("\n"),
  };
}

function unreadTooltip({ length }: readonly Task[]): string {
  if (length === 0) return "";
  return length === 1 ? vscode.l10n.t("1 unread result") : vscode.l10n.t("{0} unread results", length);
}
