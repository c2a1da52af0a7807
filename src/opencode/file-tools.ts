import { isAbsolute, join, normalize } from "node:path";
import type { FileUse, ToolState } from "../engine/server-model.ts";

/*
 * The files that calls of OpenCode's own tools name. Any other tool, a shell command above all, may read and write what
 * it likes without saying so.
 */

/** The files that a call is about to write: absolute paths; none: it does not say. */
export function filesToWrite(tool: string, input: unknown, directory: string): readonly string[] {
  if (typeof input !== "object" || input === null) return [];
  const { filePath, patchText } = input as { readonly filePath?: unknown; readonly patchText?: unknown };
  if ((tool === "edit" || tool === "write") && typeof filePath === "string")
    return [absolute(filePath, directory)];
  if (tool === "apply_patch" && typeof patchText === "string")
    return [...patchText.matchAll(/^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm)].map(
      ([, path = ""]) => absolute(path.trim(), directory),
    );
  return [];
}

/** What a call reads from the moment at which it runs, or has written once it is completed; undefined: nothing yet. */
export function fileUse(tool: string, state: ToolState, directory: string): FileUse | undefined {
  if (tool === "read") {
    const { filePath } = state.input;
    return state.status === "pending" || typeof filePath !== "string"
      ? undefined
      : { access: "read", paths: [absolute(filePath, directory)] };
  }
  if (state.status !== "completed") return undefined;
  const paths = filesToWrite(tool, state.input, directory);
  return paths.length === 0 ? undefined : { access: "write", paths };
}

function absolute(path: string, directory: string): string {
  return normalize(isAbsolute(path) ? path : join(directory, path));
}
