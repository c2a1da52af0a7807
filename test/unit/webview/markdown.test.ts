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
      "./relative.md",
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

  it("does not link file names", () => {
    assert.deepEqual(links(render("README.md and test.py and www.example.com and a@b.test")), []);
  });

  it("never loads an image, but links to it", () => {
    const html = render('![a "chart"](https://a.test/x.png?a=1&b=2)');
    assert.doesNotMatch(html, /<img/);
    assert.match(
      html,
      /<a class="image" href="https:\/\/a.test\/x.png\?a=1&amp;b=2">a &quot;chart&quot; \(https:/,
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
