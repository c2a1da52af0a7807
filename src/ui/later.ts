/* What a person sees and does, in a chunk of its own: it is loaded when they do. */

export { Review } from "./changes/review.ts";
export * as forPrograms from "./commands/for-programs.ts";
export * as commands from "./commands/index.ts";
export { EditorTool } from "./editor-tool.ts";
export { tellClosed } from "./folders/tell-closed.ts";
export { openSession } from "./output/open-session.ts";
export { tellRequest, tellSeveral } from "./requests/tell-request.ts";
export { describe } from "./status-bar-text.ts";
export { EndNotifications, tellCeiling, tellCollision, tellDepth, tellNews } from "./tell-task.ts";
export { batchTooltip, childTooltip } from "./tree/task-tooltip.ts";
