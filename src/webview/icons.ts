const SVG = "http://www.w3.org/2000/svg";

/** Outlines on a 16×16 grid, drawn with a stroke width of 1. */
const OUTLINES = {
  running: "M8 1.5A6.5 6.5 0 1 1 1.5 8",
  completed: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5 8.2l2.1 2.1L11 6.2",
  error: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6",
  cancelled: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM3.4 12.6l9.2-9.2",
  pending: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM8 4.5V8l2.5 1.5",
  attention: "M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.3v.4",
  question:
    "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.3v.2M8 11.3v.4",
  offline: "M2 2l12 12M4.2 6A6 6 0 0 0 2 8M13.9 8A8.4 8.4 0 0 0 7.6 5M10.6 10.6A4 4 0 0 0 5.2 10.7M8 13.2v.3",
  chevron: "M6 3.5L10.5 8L6 12.5",
  thought:
    "M5.5 11.5c-.2-1.4-2-2.2-2-4.7a4.5 4.5 0 0 1 9 0c0 2.5-1.8 3.3-2 4.7zM6 14.5h4M8 11.5V8.2M6.6 7L8 8.2L9.4 7",
  terminal: "M1.5 2.5h13v11h-13zM4 5.5L6.5 8L4 10.5M8 10.5h4",
  file: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
  edit: "M2.5 13.5l.8-3.3L11 2.5l2.5 2.5l-7.7 7.7zM9.3 4.2l2.5 2.5",
  search: "M6.8 2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6zM10.3 10.3l4.2 4.2",
  web: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM1.8 6h12.4M1.8 10h12.4M8 1.5c-4 4-4 9 0 13c4-4 4-9 0-13z",
  list: "M2 4l1 1l1.7-2M2 8.5l1 1l1.7-2M2 13l1 1l1.7-2M7 4h7M7 8.5h7M7 13h7",
  agent: "M3 5.5h10v7.5H3zM8 5.5V3M8 1.8v1.2M5.8 8.5v1M10.2 8.5v1M1 8v3M15 8v3",
  tool: "M9.6 6.4l-7 7M9 3.6a3.2 3.2 0 0 1 4.1-1.3L11 4.4l.6.6l.6.6l2-2.1A3.2 3.2 0 0 1 9.6 6.9A3.2 3.2 0 0 1 9 3.6z",
  fork: "M4.5 2a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3zM11.5 2a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3zM8 11a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3zM4.5 5c0 3 3.5 2.5 3.5 6M11.5 5c0 3-3.5 2.5-3.5 6",
  adopt: "M7 2a2.7 2.7 0 1 0 0 5.4A2.7 2.7 0 1 0 7 2zM1.5 14c0-6 11-6 11 0M13 3.5v5M10.5 6h5",
  stop: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5.8 5.8h4.4v4.4H5.8z",
  copy: "M5.5 5.5h8v9h-8zM10.5 5.5v-4h-8v9h3",
  document: "M3.5 1.5h9v13h-9zM6 5h4M6 8h4M6 11h2",
  diff: "M3.5 1.5h9v13h-9zM8 4v4M6 6h4M6 11h4",
  bringBack: "M13.5 2.5v5.5H3M6.5 4.5L3 8l3.5 3.5M2.5 14h11",
  check: "M3 8.5L6.5 12L13 4.5",
  idle: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM6.3 5.5v5M9.7 5.5v5",
  shield: "M8 1.5L13.5 3.5V8c0 3.2-2.3 5.4-5.5 6.5C4.8 13.4 2.5 11.2 2.5 8V3.5z",
  up: "M8 13.5v-11M3.5 7L8 2.5L12.5 7",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  open: "M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13.5 2.5L7.5 8.5",
  down: "M8 2.5v11M3.5 9L8 13.5L12.5 9",
  compress: "M2 8h12M8 1.5v4M6 4l2 2l2-2M8 14.5v-4M6 12l2-2l2 2",
} as const;

export type IconName = keyof typeof OUTLINES;

/** Hidden from screen readers, because the text beside it says the same. */
export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", OUTLINES[name]);
  svg.append(path);
  return svg;
}

const TOOL_ICONS: Readonly<Record<string, IconName>> = {
  bash: "terminal",
  read: "file",
  write: "edit",
  edit: "edit",
  multiedit: "edit",
  patch: "edit",
  apply_patch: "edit",
  grep: "search",
  glob: "search",
  list: "search",
  codesearch: "search",
  webfetch: "web",
  websearch: "web",
  todowrite: "list",
  todoread: "list",
  task: "agent",
  question: "question",
  skill: "document",
};

export function toolIcon(tool: string): IconName {
  if (tool.startsWith("asyncagents_")) return "agent";
  return Object.hasOwn(TOOL_ICONS, tool) ? TOOL_ICONS[tool]! : "tool";
}
