import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * What keeps users out of a page: the serious and critical findings of axe. `evaluate` runs an expression there, as a
 * debugger does, because the page's own policy lets no other script in.
 */
export async function barriers(evaluate: (script: string) => Promise<unknown>): Promise<readonly string[]> {
  if (!(await evaluate("'axe' in window"))) await evaluate(AXE);
  return (await evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => [id, html.slice(0, 160), any[0]?.message].join(" "))))`)) as string[];
}
