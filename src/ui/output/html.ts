export interface OutputPage {
  /** Stored by the page, so that the panel can be restored. Empty for a page that shows no single task. */
  readonly taskID: string;
  readonly title: string;
  /** Shown until the script replaces it. */
  readonly loading: string;
  /** BCP 47 tag. */
  readonly language: string;
  readonly scriptUri: string;
  readonly styleUri: string;
  /** Where the editor serves resources from, for the content security policy. */
  readonly cspSource: string;
  /** Different for each page. */
  readonly nonce: string;
}

/** A page in an editor tab. It loads only the extension's script and style sheet. */
export function outputPage(page: OutputPage): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${page.nonce}'`,
    `style-src ${page.cspSource}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="${escape(page.language)}">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${escape(policy)}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${escape(page.title)}</title>
    <link rel="stylesheet" href="${escape(page.styleUri)}" />
  </head>
  <body>
    <div id="app" data-task="${escape(page.taskID)}"><p class="placeholder" role="status">${escape(page.loading)}</p></div>
    <script type="module" nonce="${escape(page.nonce)}" src="${escape(page.scriptUri)}"></script>
  </body>
</html>
`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");
}
