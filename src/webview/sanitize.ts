import DOMPurify from "dompurify";

/** A second line of defense: only this gets into the page, even if the Markdown renderer lets more through. */
export function sanitized(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    ALLOWED_TAGS: [
      ..."a p br hr em strong s del code pre blockquote ul ol li".split(" "),
      ..."h2 h3 h4 h5 h6 table thead tbody tr th td div span button".split(" "),
    ],
    ALLOWED_ATTR: ["href", "title", "class", "dir", "start", "type", "tabindex"],
    // Other attributes are also checked against the expression for addresses, unless named here.
    ADD_URI_SAFE_ATTR: ["dir", "start", "type", "tabindex"],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}
