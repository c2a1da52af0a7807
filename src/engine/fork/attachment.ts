import type { FilePart } from "../server-model.ts";
import { oneLine } from "./excerpt.ts";

/** Longest address of a file that a fork inherits, in characters: an image in a `data:` URL is its own content. */
export const ATTACHMENT_LENGTH = 1024 * 1024;

/** A file in words: name, type and, where the conversation holds its content, its size. */
export function describeFile({ filename, mime, url }: FilePart): string {
  const size = contentBytes(url);
  const name = oneLine(filename ?? "") || "unnamed";
  return `[File: ${name}, ${oneLine(mime)}${size === undefined ? "" : `, ${formatBytes(size)}`}]`;
}

/** Undefined: the content is elsewhere. */
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
