/** Lists everything that is running. */
export const SHOW_ACTIVE = "_asyncagents.showActive";

/** Shows the output of the row that was just clicked, which is thus the selected one. */
export const SHOW_SELECTED = "_asyncagents.showSelected";

/** The commands that only the extension itself runs; the others are in the manifest. */
export const INTERNAL_COMMANDS: readonly string[] = [
  "_asyncagents.launchFromView",
  "_asyncagents.splitPrompt",
  "_asyncagents.openChange",
  "_asyncagents.explainOpenCode2",
  SHOW_SELECTED,
  SHOW_ACTIVE,
];
