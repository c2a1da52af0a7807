import type { PanelMessage } from "../protocol/output.ts";
import type { Formatter } from "../protocol/format.ts";
import type { Row } from "./conversation.ts";
import type { L10n } from "./l10n.ts";
import type { MarkdownRenderer } from "./markdown.ts";

/** What every part of the page needs. */
export interface Context {
  readonly l10n: L10n;
  readonly format: Formatter;
  readonly markdown: MarkdownRenderer;
  /** Milliseconds since 1970, by the clock of the extension. */
  readonly now: () => number;
  readonly post: (message: PanelMessage) => void;
}

/** What the reader opened: tool calls and reasoning, by the ID of their entry. */
export interface Disclosures {
  isOpen(id: string): boolean;
  toggle(row: Row): void;
}
