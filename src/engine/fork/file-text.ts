import type { AttachedFile } from "../server-model.ts";
import { oneLine } from "./excerpt.ts";

/** The maximum URL length of an inherited file, in characters. A `data:` URL contains the file itself. */
export const MAX_FILE_URL = 1024 * 1024;

/** Describes a file: name, type and, if the conversation holds the content, its size. */
export function describeFile({ filename, mime, url }: AttachedFile): string {
  const size = contentBytes(url);
  const name = oneLine(filename ?? "") || "unnamed";
  return `[File: ${name}, ${oneLine(mime)}${size === undefined ? "" : `, ${formatBytes(size)}`}]`;
}

/** Undefined if the content is elsewhere. */
function contentBytes(url: string): number | undefined {
  if (!url.startsWith("data:")) return undefined;
  const comma = url.indexOf(",");
  const length = url.length - comma - 1;
  if (!url.slice(0, comma).endsWith(";base64")) return length;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  return Math.floor((length * 3) / 4) - padding;
}

function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
