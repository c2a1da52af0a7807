/** How much code users load, and the size of the package. `run.ts` makes the package. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { repository } from "../support/extension-host.ts";
import { PACKAGED, Report } from "./support/report.ts";

const dist = join(repository, "dist");
const entry = "extension.cjs";
const chunks = readdirSync(join(dist, "chunks")).map((name) => `chunks/${name}`);
const code = (name: string): string => readFileSync(join(dist, name), "utf8");

/** The entry and what it imports statically, also indirectly. */
const atStart = new Set([entry]);
for (const file of atStart) {
  const imports = code(file).match(/\}=require\("[^"]+"\)/g) ?? [];
  for (const chunk of chunks)
    if (imports.some((from) => from.endsWith(`/${basename(chunk)}")`))) atStart.add(chunk);
}
const kilobytes = (files: Iterable<string>): number =>
  [...files].reduce((sum, file) => sum + code(file).length, 0) / 1000;

const report = new Report("sizes");
const add = (what: string, value: number, limit: number): void => {
  report.figures(what, "kB", [value]);
  report.budget({ what, value, limit, unit: "kB" });
};
add("extension host, at the start", kilobytes(atStart), 70);
add("extension host, in all", kilobytes([entry, ...chunks]), 250);
add("output panel", kilobytes(["webview.js"]), 220);
add("package", statSync(PACKAGED).size / 1000, 2_000);
report.finish();
