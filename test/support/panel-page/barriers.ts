import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/**
 * Accessibility problems of a page: all findings of axe. `evaluate` runs an expression in the page like a debugger, because
 * the page's content security policy blocks other scripts.
 */
export async function barriers(evaluate: (script: string) => Promise<unknown>): Promise<readonly string[]> {
  if (!(await evaluate("'axe' in window"))) await evaluate(AXE);
  return (await evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => [id, html.slice(0, 160), any[0]?.message].join(" "))))`)) as string[];
}
