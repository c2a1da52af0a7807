import type { PanelMessage } from "../protocol/output.ts";
import type { Formatter } from "../protocol/format.ts";
import type { Row } from "./conversation.ts";
import type { Images } from "./images.ts";
import type { L10n } from "./l10n.ts";
import type { MarkdownRenderer } from "./markdown.ts";

/** What every part of the page needs. */
export interface Context {
  readonly l10n: L10n;
  readonly format: Formatter;
  readonly markdown: MarkdownRenderer;
  readonly images: Images;
  /** Milliseconds since 1970, by the extension's clock. */
  readonly now: () => number;
  readonly post: (message: PanelMessage) => void;
}

/** Which tool calls and reasoning the reader has expanded, by entry ID. */
export interface Disclosures {
  isOpen(id: string): boolean;
  toggle(row: Row): void;
}
