import { isAbsolute, join, normalize } from "node:path";
import * as z from "zod/mini";
import type { FileUse, PermissionRequest, ToolState } from "../engine/server-model.ts";
import { tryParse } from "./validation.ts";

/*
 * The files that calls of OpenCode's own tools name. Other tools, such as shell commands, may read and write any file
 * without reporting it.
 */

/** The files that a call is about to write, as absolute paths. Empty if it names none. */
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

/** The files that a running call reads, or a completed call has written. Undefined if there are none yet. */
export function fileUse(tool: string, state: ToolState, directory: string): FileUse | undefined {
  if (tool === "read") {
    const { filePath } = state.input;
    return state.status === "pending" || typeof filePath !== "string"
      ? undefined
      : { access: "read", paths: [absolute(filePath, directory)] };
  }
  // A command that failed may have written files as well.
  if (tool === "bash" && (state.status === "completed" || state.status === "error"))
    return { access: "write", paths: [] };
  if (state.status !== "completed") return undefined;
  const paths = filesToWrite(tool, state.input, directory);
  return paths.length === 0 ? undefined : { access: "write", paths };
}

const changesMetadata = z.object({
  filepath: z.optional(z.string()),
  files: z.optional(z.array(z.object({ filePath: z.string(), movePath: z.optional(z.string()) }))),
});

/** The files that a request to change files names. A patch asks once for all of its files. */
export function filesToChange({
  permission,
  metadata,
}: Pick<PermissionRequest, "permission" | "metadata">): NonNullable<PermissionRequest["files"]> {
  if (permission !== "edit") return [];
  const { files, filepath } = tryParse(changesMetadata, metadata) ?? {};
  if (!files) return filepath !== undefined && isAbsolute(filepath) ? [{ path: normalize(filepath) }] : [];
  return files.map(({ filePath, movePath }) => ({
    path: normalize(filePath),
    ...(movePath !== undefined && { movedTo: normalize(movePath) }),
  }));
}

function absolute(path: string, directory: string): string {
  return normalize(isAbsolute(path) ? path : join(directory, path));
}
