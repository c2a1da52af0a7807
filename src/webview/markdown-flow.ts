import type { Context } from "./context.ts";
import { replaceChangedTail } from "./dom.ts";
import { highlighted } from "./highlight.ts";
import { sanitized } from "./sanitize.ts";
import { Segmenter } from "./segmenter.ts";

type Drawing = Pick<Context, "markdown" | "images">;

/** Growing Markdown in one element; what is rendered and hasn't changed stays. */
export class MarkdownFlow {
  private text = "";
  private segments = new Segmenter();
  private rendered: string[] = [];

  constructor(
    private readonly element: HTMLElement,
    private readonly context: Drawing,
  ) {}

  show(text: string): void {
    if (!text.startsWith(this.text)) {
      this.segments = new Segmenter();
      this.text = "";
      this.rendered = [];
      this.element.replaceChildren();
    }
    this.segments.append(text.slice(this.text.length));
    this.text = text;
    for (let index = 0; index < this.segments.count; index++) {
      const segment = this.segments.segment(index);
      if (segment === this.rendered[index]) continue;
      const block = this.element.children[index] ?? this.element.appendChild(document.createElement("div"));
      renderMarkdown(block, segment, this.context);
      this.rendered[index] = segment;
    }
  }
}

/** Shows Markdown in the element. Unchanged leading blocks stay, and with them the selection. */
export function renderMarkdown(
  element: Element,
  text: string,
  { markdown, images }: Drawing,
  options?: { breaks: boolean },
): void {
  const fragment = sanitized(markdown.toHtml(text, options));
  for (const code of fragment.querySelectorAll("code[class]"))
    code.replaceChildren(...highlighted(code.textContent, code.className.replace(/^language-/, "")));
  images.fill(fragment);
  replaceChangedTail(element, fragment);
}
