import type { ToolPart } from "../../engine/server-model.ts";

/** By tool, the input fields that a diff shows better. */
const CHANGE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  edit: ["oldString", "newString"],
  write: ["content"],
  patch: ["patchText"],
  apply_patch: ["patchText"],
};

/** The call's changes to files as a unified diff: from the server, otherwise derived from the input. */
export function toolDiff({ tool, state }: ToolPart): string | undefined {
  if (state.status === "error") return undefined;
  const diff = "metadata" in state ? state.metadata?.["diff"] : undefined;
  if (typeof diff === "string" && diff !== "") return diff;
  const [first, second] = changeFields(tool).map((field) => state.input[field]);
  if (typeof first !== "string") return undefined;
  switch (tool) {
    case "edit":
      return typeof second === "string" ? replacement(first, second) : undefined;
    case "write":
      return marked("+", linesOf(first)).join("\n");
    default:
      return first;
  }
}

/** The fields of the tool's input that its diff already shows. */
export function changeFields(tool: string): readonly string[] {
  return Object.hasOwn(CHANGE_FIELDS, tool) ? (CHANGE_FIELDS[tool] ?? []) : [];
}

/** Common lines at the start and end are context; everything between is replaced. */
function replacement(before: string, after: string): string {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < shorter && old[start] === fresh[start]) start++;
  let end = 0;
  while (end < shorter - start && old.at(-1 - end) === fresh.at(-1 - end)) end++;
  return [
    ...marked(" ", old.slice(0, start)),
    ...marked("-", old.slice(start, old.length - end)),
    ...marked("+", fresh.slice(start, fresh.length - end)),
    ...marked(" ", old.slice(old.length - end)),
  ].join("\n");
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function marked(mark: string, lines: readonly string[]): readonly string[] {
  return lines.map((line) => mark + line);
}
