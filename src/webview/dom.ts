type Child = Node | string | false | undefined;

/** Creates an element; `false` and `undefined` attributes and children are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== false && child !== undefined));
  return element;
}

export function button(
  look: string,
  run: (event: MouseEvent) => void,
  ...children: readonly Child[]
): HTMLButtonElement {
  const element = h("button", { type: "button", class: look }, ...children);
  element.addEventListener("click", run);
  // A key that is held is meant once: each click may launch a task.
  element.addEventListener("keydown", (event) => {
    if (event.repeat && event.key === "Enter") event.preventDefault();
  });
  return element;
}

/** What can have the focus, be selected or be scrolled sideways while an answer grows, or contain that. */
const STAYING =
  "pre, code, .code, .code-bar, .code-copy, .table, table, thead, tbody, tr, th, td, p, ul, ol, li, blockquote";

/**
 * Replaces the children of `element` with those of `source`, but keeps leading ones that are equal. Some stay the same
 * elements while their content changes, so that they keep the focus, the selection and the scroll position.
 */
export function replaceChangedTail(element: Element, source: ParentNode): void {
  let old = element.firstChild;
  let fresh = source.firstChild;
  while (old && fresh && (old.isEqualNode(fresh) || takesContent(old, fresh))) {
    old = old.nextSibling;
    const same = fresh;
    fresh = fresh.nextSibling;
    same.remove();
  }
  while (old) {
    const stale = old;
    old = old.nextSibling;
    stale.remove();
  }
  element.append(...source.childNodes);
}

function takesContent(old: ChildNode, fresh: ChildNode): boolean {
  if (old instanceof Text && fresh instanceof Text && fresh.data.startsWith(old.data)) {
    old.appendData(fresh.data.slice(old.length));
    return true;
  }
  if (!(old instanceof HTMLElement && old.matches(STAYING) && fresh instanceof HTMLElement)) return false;
  if (!withoutLook(old).isEqualNode(withoutLook(fresh))) return false;
  // An empty attribute would make it differ from each later one.
  if (old.className !== fresh.className) old.className = fresh.className;
  replaceChangedTail(old, fresh);
  return true;
}

function withoutLook(element: HTMLElement): Node {
  const copy = element.cloneNode() as HTMLElement;
  copy.className = "";
  return copy;
}

export type TextField = HTMLInputElement | HTMLTextAreaElement;

export function isTextField(target: EventTarget | null): target is TextField {
  return (
    target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === "text")
  );
}
