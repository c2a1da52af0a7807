/** The parts of a row that are text of the conversation, in contrast to labels and buttons. */
const READABLE =
  ".answer, .prompt, .reasoning, .row-tool .line-name, .line-title, .fields, .diff-text, .output, .problem-text, .note-text";
const LABELS = ".code-bar, .sr-only, .image-problem";
/** Between parts that are apart: no query matches it. */
const GAP = "\u0000";
const BLOCKS = new Set("BLOCKQUOTE DD DIV DT H2 H3 H4 H5 H6 HR LI OL P PRE TABLE TD TH TR UL".split(" "));

interface Piece {
  readonly node: Text;
  /** Where its text begins in the whole. */
  readonly start: number;
}

/** The text of an element as it is read, and the text nodes that it consists of. */
function readingOf(root: Node): { readonly text: string; readonly pieces: readonly Piece[] } {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
    node instanceof Element && node.matches(LABELS) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
  );
  const pieces: Piece[] = [];
  let text = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node instanceof Text) {
      pieces.push({ node, start: text.length });
      text += node.data;
    } else if (BLOCKS.has(node.nodeName) || (node instanceof Element && node.matches(".diff-line")))
      text += GAP;
  }
  return { text, pieces };
}

/** The text that the HTML shows. It is parsed apart from the page, and nothing in it is run or loaded. */
export function textOfHtml(html: string): string {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  return readingOf(body).text;
}

/** Where the expression matches in a row of the conversation. */
export function rangesIn(row: Element, expression: RegExp): Range[] {
  return [...row.querySelectorAll(READABLE)].flatMap((part) => {
    const { text, pieces } = readingOf(part);
    return [...text.matchAll(expression)].map(({ 0: match, index }) => {
      const range = document.createRange();
      const first = pieceAt(pieces, index);
      const last = pieceAt(pieces, index + match.length - 1);
      range.setStart(first.node, index - first.start);
      range.setEnd(last.node, index + match.length - last.start);
      return range;
    });
  });
}

function pieceAt(pieces: readonly Piece[], index: number): Piece {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (pieces[middle]!.start <= index) low = middle;
    else high = middle - 1;
  }
  return pieces[low]!;
}
