/**
 * `npm run bench`, or `npm run bench -- launch twenty` for the named ones alone: packages the extension, runs the
 * benchmarks one after the other, each in its own process, and shows what they measured beside its budget. The same is
 * saved in `bench-results.json`. Exits with 1 if one failed or exceeded its budget.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../support/extension-host.ts";
import { BENCH_RESULTS, PACKAGED, resultFile, shown, type SavedReport } from "./support/report.ts";

/** A line of the table. No value: the benchmark failed before it had one. */
interface Row {
  readonly name: string;
  readonly value: number | null;
  readonly unit: string;
  readonly budget: number | null;
  readonly pass: boolean;
}

const here = import.meta.dirname;
const all = readdirSync(here)
  .filter((file) => file.endsWith(".ts") && file !== "run.ts")
  .map((file) => file.slice(0, -".ts".length));
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`No such benchmark: ${unknown.join(", ")}. There are: ${all.join(", ")}.`);
  process.exit(2);
}

packageExtension();
const rows = (wanted.length > 0 ? wanted : all).flatMap(run);
writeFileSync(BENCH_RESULTS, `${JSON.stringify({ rows }, undefined, 2)}\n`);
show(rows);
process.exitCode = rows.every(({ pass }) => pass) ? 0 : 1;

/** Development builds are larger and slower than what users get. */
function packageExtension(): void {
  mkdirSync(join(PACKAGED, ".."), { recursive: true });
  const args = ["run", "--silent", "package", "--", "--out", PACKAGED];
  const { status } = spawnSync("npm", args, { cwd: repository, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error("The extension could not be packaged.");
}

function run(name: string): readonly Row[] {
  rmSync(resultFile(name), { force: true });
  const args = ["--import=tsx", join(here, `${name}.ts`)];
  spawnSync(process.execPath, args, { cwd: repository, stdio: "inherit" });
  return saved(name).map(({ what, value, limit, unit, met }) => ({
    name: `${name}: ${what}`,
    value,
    unit,
    budget: limit,
    pass: met,
  }));
}

function saved(name: string): SavedReport["budgets"] | readonly [Failure] {
  try {
    return (JSON.parse(readFileSync(resultFile(name), "utf8")) as SavedReport).budgets;
  } catch {
    return [{ what: "did not finish", value: null, limit: null, unit: "", met: false }];
  }
}

interface Failure {
  readonly what: string;
  readonly value: null;
  readonly limit: null;
  readonly unit: string;
  readonly met: false;
}

function show(table: readonly Row[]): void {
  const cells = table.map(({ name, value, unit, budget, pass }) => [
    name,
    value === null ? "" : `${shown(value)} ${unit}`,
    budget === null ? "" : `${budget} ${unit}`,
    pass ? "✔" : "✖",
  ]);
  const lines = [["what", "value", "budget", "within"], ...cells];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  console.log();
  for (const line of lines)
    console.log(line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  const over = table.filter(({ pass }) => !pass).length;
  console.log(`\n${table.length - over} of ${table.length} within budget`);
}
