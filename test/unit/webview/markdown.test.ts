import assert from "node:assert/strict";

import { isSafeLink } from "../../../src/protocol/output-guard.ts";
import { MarkdownRenderer } from "../../../src/webview/markdown.ts";

describe("MarkdownRenderer", () => {
  const render = (text: string): string => new MarkdownRenderer("Copy").toHtml(text);
  const links = (html: string): string[] =>
    Array.from(html.matchAll(/href="([^"]*)"/g), ([, href]) => href ?? "");

  it("shows HTML as text", () => {
    const html = render(`<script>alert(1)</script> <img src=x onerror=alert(1)>\n\n<div onclick="x">y</div>`);
    assert.doesNotMatch(html, /<(?:script|img|div)/);
    assert.match(html, /&lt;script&gt;/);
  });

  it("links only to web and mail addresses", () => {
    assert.deepEqual(
      links(render("[a](https://a.test) <http://b.test> https://c.test/x [m](mailto:a@b.test)")),
      ["https://a.test", "http://b.test", "https://c.test/x", "mailto:a@b.test"],
    );
    for (const url of [
      "command:workbench.action.quit",
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "file:///etc/passwd",
      "data:text/html,x",
      "vscode://x.y/z",
      "//host/path",
      "ftp://a.test",
      "&#106;avascript:alert(1)",
    ]) {
      assert.deepEqual(
        links(render(`[text](${url}) <${url}> ![image](${url})\n\n[ref]\n\n[ref]: ${url}`)),
        [],
        url,
      );
      assert.match(render(`[text](${url})`), /\[text\]\(/);
    }
  });

  /** The paths of the buttons that open a file. */
  const files = (text: string): string[] =>
    Array.from(
      render(text).matchAll(/<button[^>]*class="path(?: image)?"[^>]*title="([^"]*)"/g),
      ([, path]) => path ?? "",
    );

  it("turns links to files into buttons that open them", () => {
    assert.deepEqual(
      files("[cart](src/cart.js#L12) [**it**](./a%20b/c.md) [x](/work/x.py:3) ![chart](docs/chart.png)"),
      ["src/cart.js#L12", "./a b/c.md", "/work/x.py:3", "docs/chart.png"],
    );
    assert.match(render("[**it**](x.md)"), /title="x.md"><strong>it<\/strong><\/button>/);
    assert.deepEqual(
      files("[a](https://a.test/src/a.ts) [b](command:x.ts) [c](file:///a.ts) [d](//h/a.ts?x)"),
      [],
    );
  });

  it("links paths in running text that are in a folder or have a line", () => {
    assert.deepEqual(
      files("At src/cart.js:18:5, cart.js:7 (see src/util/a.ts). In C:\\work\\a.cs and /work/b.py:2."),
      ["src/cart.js:18:5", "cart.js:7", "src/util/a.ts", "C:\\work\\a.cs", "/work/b.py:2"],
    );
    assert.match(render("At src/a.ts:1."), /At <button[^>]*dir="ltr">src\/a.ts:1<\/button>\./);
    assert.deepEqual(
      files(
        "README.md console.log a.test:80 https://a.test/src/a.ts [x src/a.ts](https://a.test) `src/a.ts` and/or 1.2:3",
      ),
      [],
    );
  });

  it("shows the boxes of a task list", () => {
    const html = render("- [x] done\n- [ ] **open**\n- [link](https://a.test)\n- [x]no");
    assert.match(html, /<li class="task">☑ done<\/li>\n<li class="task">☐ <strong>/);
    assert.equal(html.match(/class="task"/g)?.length, 2);
  });

  it("keeps code from left to right in text of the other direction", () => {
    assert.match(render("שלום `a.b(c)` ו `src/a.ts`"), /<code dir="ltr">a.b.*<code dir="ltr">src\/a.ts/);
  });

  it("does not link file names", () => {
    assert.deepEqual(links(render("README.md and test.py and www.example.com and a@b.test")), []);
  });

  it("marks links to images that can be shown, by name too", () => {
    const shown = (text: string): string[] =>
      Array.from(render(text).matchAll(/class="path image"[^>]*title="([^"]*)">/g), ([, path]) => path ?? "");
    assert.deepEqual(
      shown("![A](a.png) ![B](docs/b%20c.JPG) ![C](./c.jpeg) ![D](/work/d.gif) ![E](e.webp)"),
      ["a.png", "docs/b c.JPG", "./c.jpeg", "/work/d.gif", "e.webp"],
    );
    assert.match(render("![A](a.png)"), />A \(a.png\)<\/button>/);
    assert.deepEqual(
      shown("![A](a.svg) ![B](https://a.test/b.png) [C](c.png) ![D](//a.test/d.png?x) ![E](e.png:3) f/f.png"),
      [],
    );
  });

  it("never loads an image, but links to it", () => {
    const html = render('![a "chart"](https://a.test/x.png?a=1&b=2)');
    assert.doesNotMatch(html, /<img/);
    assert.match(
      html,
      /<a class="image" tabindex="-1" href="https:\/\/a.test\/x.png\?a=1&amp;b=2">a &quot;chart&quot; \(https:/,
    );
  });

  it("escapes code and its language", () => {
    const html = render('```"><img src=x>\n</code></pre><script>1</script>\n```\n\n    <b>\n\n`<i>`');
    assert.doesNotMatch(html, /<(?:img|script|b|i)>/);
  });

  it("starts headings at the second level, with automatic text direction", () => {
    assert.equal(render("# Title"), '<h2 dir="auto">Title</h2>\n');
    assert.equal(render("###### Deep"), '<h6 dir="auto">Deep</h6>\n');
  });

  it("aligns table cells without inline styles", () => {
    const html = render("| a | b |\n|--:|:-:|\n| 1 | 2 |");
    assert.doesNotMatch(html, /style=/);
    assert.match(html, /<td dir="auto" class="align-right">1<\/td>/);
  });

  it("keeps line breaks on request", () => {
    assert.match(new MarkdownRenderer("Copy").toHtml("a\nb", { breaks: true }), /a<br>/);
    assert.doesNotMatch(render("a\nb"), /<br>/);
  });
});

describe("isSafeLink", () => {
  it("refuses white space and control characters, which browsers drop", () => {
    assert.equal(isSafeLink("https://a.test/x"), true);
    for (const url of [
      "java\nscript:alert(1)",
      "https://a.test/\u0000",
      " https://a.test",
      "https:a.test",
      "https://",
    ])
      assert.equal(isSafeLink(url), false, url);
  });
});
