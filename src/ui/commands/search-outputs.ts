import * as vscode from "vscode";
import type { Hit } from "../../engine/search.ts";
import { isTask } from "../../engine/subagent.ts";
import { title, withoutIcons } from "../plain-text.ts";
import { childIcon } from "../tree/items.ts";
import type { CommandContext } from "./command.ts";

/** Milliseconds of typing after which a search begins. */
const DELAY_MS = 250;
const SHORTEST_QUERY = 2;
const MAX_HITS = 300;

interface HitItem extends vscode.QuickPickItem {
  readonly taskID: string;
  readonly hit: Hit;
}

/** Searches the conversations of all tasks for what is typed, and shows the one that is picked at the hit. */
export async function searchOutputs({ known, folders, panels, logger }: CommandContext): Promise<void> {
  const list = vscode.window.createQuickPick<HitItem>();
  const heading = vscode.l10n.t("Search All Outputs");
  list.title = heading;
  list.placeholder = vscode.l10n.t("Enter the text to find");
  list.matchOnDetail = true;
  list.keepScrollPosition = true;
  /** The search that counts; others end. */
  let current: object | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const search = async (query: string): Promise<void> => {
    const own = (current = {});
    const items: HitItem[] = [];
    const ids = searched();
    for (const [index, id] of ids.entries()) {
      list.title = vscode.l10n.t("{0} ({1} of {2})", heading, index, ids.length);
      const hits = await known.search(id, query).catch((error: unknown) => {
        logger.warn(`Couldn't search ${id}: ${String(error)}`);
        return [];
      });
      // The user has typed on, or closed the list.
      if (own !== current) return;
      if (hits.length === 0) continue;
      items.push(...hits.map((hit) => item(id, hit)));
      const active = list.activeItems;
      list.items = items;
      list.activeItems = active;
      if (items.length >= MAX_HITS) break;
    }
    list.title = items.length > 0 ? heading : vscode.l10n.t("Search All Outputs: No Results");
    list.busy = false;
    list.items = items;
  };
  /** The newest tasks first. */
  const searched = (): readonly string[] =>
    folders.all
      .flatMap((folder) => folder.known.sessions().flatMap(({ id }) => known.child(id) ?? []))
      .filter((child) => !isTask(child) || child.clearedAt === undefined)
      .sort((a, b) => b.createdAt - a.createdAt)
      .map(({ id }) => id);
  const item = (taskID: string, hit: Hit): HitItem => {
    const child = known.child(taskID);
    return {
      label: withoutIcons(title(child?.description ?? taskID)),
      // The list would sort lines by where they match if they were labels.
      detail: withoutIcons(title(hit.line)),
      ...(child && { iconPath: childIcon(child) }),
      // The list matches texts in another way.
      alwaysShow: true,
      taskID,
      hit,
    };
  };

  list.onDidChangeValue((query) => {
    current = undefined;
    clearTimeout(timer);
    list.items = [];
    list.title = heading;
    list.busy = query.trim().length >= SHORTEST_QUERY;
    if (list.busy) timer = setTimeout(() => void search(query), DELAY_MS);
  });
  list.onDidAccept(() => {
    const [picked] = list.selectedItems;
    if (!picked) return;
    const { entryID, nth } = picked.hit;
    panels.showMatch(picked.taskID, { query: list.value.trim(), entryID, nth });
    list.hide();
  });
  list.onDidHide(() => {
    current = undefined;
    clearTimeout(timer);
    list.dispose();
  });
  list.show();
}
