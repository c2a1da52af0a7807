import { createScanner, parseTree, type Node, type ParseError } from "jsonc-parser";

/** A value in JSON text, and where it stands there. */
export interface JsonNode {
  readonly start: number;
  /** The offset behind it. */
  readonly end: number;
  /** What is in a list or an object; undefined for any other value. */
  readonly items: readonly JsonItem[] | undefined;
  readonly value: unknown;
}

/** A value in a list, or a property of an object. */
export interface JsonItem {
  readonly start: number;
  /** The offset behind it; its comma comes later. */
  readonly end: number;
  /** The property's name. */
  readonly key: string | undefined;
  readonly node: JsonNode;
  /** The offset behind the comma that follows; undefined if none does. */
  readonly comma: number | undefined;
}

/**
 * Reads JSON as people write it in configurations: with comments and trailing commas.
 * @throws SyntaxError if it is not that; the message names the line
 * @throws RangeError if it is nested too deeply
 */
export function readJson(text: string): JsonNode {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (!root || error) throw new SyntaxError(`line ${text.slice(0, error?.offset).split("\n").length}`);
  const scanner = createScanner(text, true);

  function commaBehind(offset: number): number | undefined {
    scanner.setPosition(offset);
    scanner.scan();
    const at = scanner.getTokenOffset();
    return text[at] === "," ? at + 1 : undefined;
  }

  function nodeOf(node: Node): JsonNode {
    const { type, offset: start, length, children } = node;
    const isContainer = type === "array" || type === "object";
    const items = isContainer ? (children ?? []).map(itemOf) : undefined;
    return { start, end: start + length, items, value: items ? valueOf(type, items) : node.value };
  }

  function itemOf(node: Node): JsonItem {
    const { offset: start, length, type, children } = node;
    const end = start + length;
    const [key, value = node] = type === "property" ? (children ?? []) : [undefined, node];
    return {
      start,
      end,
      key: key?.value as string | undefined,
      node: nodeOf(value),
      comma: commaBehind(end),
    };
  }

  return nodeOf(root);
}

function valueOf(type: Node["type"], items: readonly JsonItem[]): unknown {
  if (type === "array") return items.map(({ node }) => node.value);
  return Object.fromEntries(items.map(({ key = "", node }) => [key, node.value]));
}
