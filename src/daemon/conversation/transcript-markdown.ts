import { stripVTControlCharacters } from "node:util";

import type { Message, Part } from "../../engine/server-model.ts";
import { TOOL_OUTPUT } from "../../protocol/output.ts";
import { fenced } from "../../protocol/quotation.ts";
import { toolText } from "./tool-model.ts";

/** The whole conversation, including tool outputs, as one Markdown document to search, save or share. */
export function transcriptMarkdown(title: string, messages: readonly Message[]): string {
  const sections = messages.flatMap(({ info, parts }) => {
    const texts = parts.flatMap((part) => partMarkdown(part) ?? []);
    if (info.role === "assistant" && info.error) texts.push(`**${info.error.name}**: ${info.error.message}`);
    if (texts.length === 0) return [];
    return [`## ${info.role === "user" ? "User" : info.agent}`, ...texts];
  });
  return `${[`# ${title}`, ...sections].join("\n\n")}\n`;
}

function partMarkdown(part: Part): string | undefined {
  switch (part.type) {
    case "text":
      return part.synthetic || part.text === "" ? undefined : part.text;
    case "reasoning":
      return part.text === "" ? undefined : quoted(part.text);
    case "tool": {
      const input = fenced(JSON.stringify(part.state.input, undefined, 2), "json");
      const output = toolText(part, TOOL_OUTPUT);
      return [
        `### ${part.tool} (${part.state.status})`,
        input,
        ...(output ? [fenced(stripVTControlCharacters(output), "")] : []),
      ].join("\n\n");
    }
    case "file":
      return `_${part.filename ?? part.mime}_`;
    case "other":
      return undefined;
  }
}

function quoted(text: string): string {
  return text.replace(/^/gm, "> ");
}
