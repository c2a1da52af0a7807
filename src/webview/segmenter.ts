import { isSafeLink } from "../protocol/output-guard.ts";
import { linkedFile } from "./file-links.ts";

/** A segment with this many characters ends at the next boundary between blocks. */
const ENOUGH = 1_200;
/**
 * A segment with this many characters ends before the next line that isn't indented, even within a block; with twice as
 * many, before any line.
 */
const TOO_MUCH = 8_000;
/** The limit within code, which is cheap to lay out and should be copied as a whole. */
const TOO_MUCH_CODE = 32_000;

interface Fence {
  /** What is before the marks of each of its lines: spaces. */
  readonly indent: string;
  /** Such as three backticks. */
  readonly marks: string;
  /** The opening line, which is repeated where the block is cut. */
  readonly opening: string;
}

interface Closed {
  readonly text: string;
  /** Names in brackets, which may be those of links. */
  readonly names: readonly string[];
}

/** The address of links, apart from them, such as `[1]: https://example.com`. */
interface Definition {
  readonly name: string;
  readonly line: string;
}

/**
 * Splits growing Markdown into segments that can be rendered separately: only the last one still changes, and none is
 * long. Segments end between blocks; a very long block is cut between lines (code stays code on both sides, and a table
 * a table). Addresses that another segment gives to a segment's links are repeated at its end, where they aren't seen.
 */
export class Segmenter {
  private readonly closed: Closed[] = [];
  /** By name. */
  private readonly definitions = new Map<string, Definition>();
  /** In the first incomplete line. */
  private lastDefinition: Definition | undefined;
  private open = "";
  /** The start of the first incomplete line in `open`. */
  private lineStart = 0;
  private fence: Fence | undefined;
  private afterBlank = false;

  get count(): number {
    return this.closed.length + (this.open === "" ? 0 : 1);
  }

  segment(index: number): string {
    const closed = this.closed[index];
    if (closed) return closed.text + this.addressesFor(closed);
    return this.fence ? this.open : this.open + this.addressesFor(withNames(this.open));
  }

  append(text: string): void {
    this.open += text;
    for (;;) {
      const newline = this.open.indexOf("\n", this.lineStart);
      if (newline < 0) break;
      this.takeLine(this.open.slice(this.lineStart, newline), newline + 1);
    }
    while (this.open.length - this.lineStart > 2 * TOO_MUCH) this.cutWithinLine();
    this.lastDefinition = this.fence ? undefined : definedBy(this.open.slice(this.lineStart));
  }

  /** Processes a complete line; `end` is where the next one starts. */
  private takeLine(line: string, end: number): void {
    if (!this.fence && this.endsBefore(line)) {
      const head = tableHead(this.open.slice(0, this.lineStart), line);
      this.close(this.lineStart);
      this.open = head + this.open;
      end = head.length + line.length + 1;
    }
    const definition = this.fence ? undefined : definedBy(line);
    if (definition && !this.definitions.has(definition.name))
      this.definitions.set(definition.name, definition);
    this.lineStart = end;
    this.afterBlank = line.trim() === "";
    this.fence = this.fence ? afterLine(this.fence, line) : openedBy(line);
    const { fence } = this;
    if (!fence || end < TOO_MUCH_CODE) return;
    this.open = `${this.open.slice(0, end)}${closing(fence)}\n${fence.opening}\n${this.open.slice(end)}`;
    this.close(end + closing(fence).length + 1);
    this.lineStart = fence.opening.length + 1;
  }

  private endsBefore(line: string): boolean {
    if (this.afterBlank && this.lineStart >= ENOUGH && startsBlock(line)) return true;
    return this.lineStart >= TOO_MUCH && (/^\S/.test(line) || this.lineStart >= 2 * TOO_MUCH);
  }

  private cutWithinLine(): void {
    const space = this.open.lastIndexOf(" ", this.lineStart + TOO_MUCH);
    let at = space > this.lineStart ? space + 1 : this.lineStart + TOO_MUCH;
    if (isLowSurrogate(this.open.charCodeAt(at))) at--;
    const { fence } = this;
    if (!fence) {
      this.close(at);
      return;
    }
    this.open = `${this.open.slice(0, at)}\n${closing(fence)}\n${fence.opening}\n${this.open.slice(at)}`;
    this.close(at + closing(fence).length + 2);
    this.lineStart = fence.opening.length + 1;
  }

  private close(end: number): void {
    this.closed.push(withNames(this.open.slice(0, end)));
    this.open = this.open.slice(end);
    this.lineStart = 0;
    this.afterBlank = false;
  }

  private addressesFor({ text, names }: Closed): string {
    const lines = names
      .map((name) => this.definition(name)?.line)
      .filter((line) => line !== undefined && !text.includes(line));
    return lines.length === 0 ? "" : `\n\n${lines.join("\n")}`;
  }

  private definition(name: string): Definition | undefined {
    const last = this.lastDefinition;
    return this.definitions.get(name) ?? (last?.name === name ? last : undefined);
  }
}

function withNames(text: string): Closed {
  const names = Array.from(text.matchAll(/\[[^[\]]+\]/g), ([name]) => name.toLowerCase());
  return { text, names: [...new Set(names)] };
}

function definedBy(line: string): Definition | undefined {
  const [, name, address] =
    /^ {0,3}(\[[^[\]]+\]):\s+(\S+)(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*$/.exec(line) ?? [];
  const url = address?.replace(/^<(.*)>$/, "$1");
  if (name === undefined || url === undefined) return undefined;
  return isSafeLink(url) || linkedFile(url) !== undefined ? { name: name.toLowerCase(), line } : undefined;
}

/** Whether the line, following a blank one, starts a new block that isn't part of a list. */
function startsBlock(line: string): boolean {
  return line.trim() !== "" && !/^(?:\s{2,}|\t|\s*(?:[-*+]|\d{1,9}[.)])\s)/.test(line);
}

/** The lines that a table begins with, if the line goes on with it. They are repeated where it is cut. */
function tableHead(before: string, line: string): string {
  if (!line.includes("|")) return "";
  const lines = before.split("\n").slice(0, -1);
  const rows = lines.slice(lines.findLastIndex((each) => each.trim() === "") + 1);
  const at = rows.findLastIndex((row) => /^[\s|:-]+$/.test(row) && row.includes("|") && row.includes("-"));
  const head = at < 1 ? "" : `${rows[at - 1]}\n${rows[at]}\n`;
  return head.length < ENOUGH ? head : "";
}

/** The fence may be the first line of a list item. */
function openedBy(line: string): Fence | undefined {
  const [, before = "", marks, rest] =
    /^((?:\s|[-*+]\s|\d{1,9}[.)]\s)*)(`{3,}(?=[^`]*$)|~{3,})(.*)/.exec(line) ?? [];
  if (marks === undefined) return undefined;
  const indent = before.replace(/\S/g, " ");
  return { indent, marks, opening: `${indent}${marks}${rest}` };
}

/** A line that is indented much more than the opening one is code. */
function afterLine(fence: Fence, line: string): Fence | undefined {
  const [, indent = "", marks] = /^(\s*)(`{3,}|~{3,})\s*$/.exec(line) ?? [];
  const closes = marks?.startsWith(fence.marks) && indent.length <= fence.indent.length + 3;
  return closes ? undefined : fence;
}

function closing({ indent, marks }: Fence): string {
  return indent + marks;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
