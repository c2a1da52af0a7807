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

const TRIVIA = /(?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*/y;
const SCALAR = /"[^"\\]*(?:\\.[^"\\]*)*"|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Reads JSON as people write it in configurations: with comments and trailing commas.
 * @throws SyntaxError if it is not that; the message names the line
 * @throws RangeError if it is nested too deeply
 */
export function readJson(text: string): JsonNode {
  let at = 0;

  function take(pattern: RegExp): string {
    pattern.lastIndex = at;
    const [token = ""] = pattern.exec(text) ?? [];
    at += token.length;
    return token;
  }

  function fail(): never {
    throw new SyntaxError(`line ${text.slice(0, at).split("\n").length}`);
  }

  function readScalar(): unknown {
    const token = take(SCALAR);
    try {
      return JSON.parse(token);
    } catch {
      at -= token.length;
      return fail();
    }
  }

  function readValue(): JsonNode {
    const start = at;
    const opening = text[at];
    if (opening === "{" || opening === "[") return readContainer(start, opening === "{");
    const value = readScalar();
    return { start, end: at, items: undefined, value };
  }

  function readContainer(start: number, isObject: boolean): JsonNode {
    const items: JsonItem[] = [];
    at++;
    take(TRIVIA);
    while (text[at] !== (isObject ? "}" : "]")) {
      if (items.length > 0 && items.at(-1)?.comma === undefined) fail();
      items.push(readItem(isObject));
      take(TRIVIA);
    }
    at++;
    const values = items.map(({ key, node }) => [key, node.value] as const);
    const value: unknown = isObject ? Object.fromEntries(values) : values.map(([, each]) => each);
    return { start, end: at, items, value };
  }

  function readItem(isObject: boolean): JsonItem {
    const start = at;
    const key = isObject ? readKey() : undefined;
    const node = readValue();
    const end = at;
    take(TRIVIA);
    const comma = text[at] === "," ? ++at : undefined;
    return { start, end, key, node, comma };
  }

  function readKey(): string {
    const key = text[at] === '"' ? (readScalar() as string) : fail();
    take(TRIVIA);
    if (text[at++] !== ":") fail();
    take(TRIVIA);
    return key;
  }

  take(TRIVIA);
  const root = readValue();
  take(TRIVIA);
  if (at < text.length) fail();
  return root;
}
