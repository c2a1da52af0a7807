/* User-facing features in a separate chunk, which is loaded on first use. */

export { Review } from "./changes/review.ts";
export * as forPrograms from "./commands/for-programs.ts";
export * as commands from "./commands/index.ts";
export { EditorTool } from "./editor-tool.ts";
export { showClosed } from "./task-notifications.ts";
export { openOverview } from "./output/open-overview.ts";
export { openSession } from "./output/open-session.ts";
export { loadPage } from "./output/web-page.ts";
export { promptLenses } from "./commands/editor-commands.ts";
export { showRequest, showSeveral } from "./requests/request-notifications.ts";
export { describe } from "./status-bar-text.ts";
export {
  EndNotifications,
  showNearLimit,
  showCollision,
  showRefused,
  showNews,
} from "./task-notifications.ts";
export { folderOf } from "./tree/items.ts";
export { batchTooltip, childTooltip } from "./tree/task-tooltip.ts";
