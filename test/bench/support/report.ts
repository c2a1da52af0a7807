import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { median, quantile } from "./measure.ts";

/** The table of the last run of the benchmarks. */
export const BENCH_RESULTS = join(repository, "bench-results.json");
const directory = join(repository, "test-results", "bench");
/** The packaged extension that the benchmarks measure. */
export const PACKAGED = join(directory, "extension.vsix");

/** Where the report of a benchmark is saved. */
export function resultFile(name: string): string {
  return join(directory, `${name}.json`);
}

export interface SavedReport {
  readonly budgets: readonly (Budget & { readonly met: boolean })[];
}

export interface Budget {
  readonly what: string;
  readonly value: number;
  readonly limit: number;
  /** Printed after the number: `ms`, `×`, `MB`. */
  readonly unit: string;
}

interface Row {
  readonly what: string;
  readonly unit: string;
  readonly values: readonly number[];
}

/** The results of one benchmark: printed, and saved as `test-results/bench/<name>.json`. */
export class Report {
  private readonly rows: Row[] = [];
  private readonly budgets: Budget[] = [];

  constructor(private readonly name: string) {}

  /** Adds the figures of all rounds, in order. */
  figures(what: string, unit: string, values: readonly number[]): void {
    this.rows.push({ what, unit, values });
  }

  /** Adds a condition: the value must be at most the limit. */
  budget(budget: Budget): void {
    this.budgets.push(budget);
  }

  /** Prints and saves the report. The process will exit with 1 if a budget was exceeded. */
  finish(): void {
    const width = Math.max(...[...this.rows, ...this.budgets].map(({ what }) => what.length));
    console.log(`\n${this.name}`);
    for (const { what, unit, values } of this.rows) {
      const [low, middle, high] = [0, 0.5, 1].map((share) => shown(quantile(values, share)));
      console.log(`  ${what.padEnd(width)}  ${middle} ${unit}  (${low} … ${high}, n = ${values.length})`);
    }
    for (const { what, value, limit, unit } of this.budgets) {
      const verdict = value <= limit ? "within" : "OVER";
      console.log(`  ${what.padEnd(width)}  ${shown(value)} ${unit}  ${verdict} ${limit} ${unit}`);
      if (value > limit) process.exitCode = 1;
    }
    mkdirSync(directory, { recursive: true });
    const figures = this.rows.map((row) => ({ ...row, median: median(row.values) }));
    const budgets = this.budgets.map((budget) => ({ ...budget, met: budget.value <= budget.limit }));
    writeFileSync(
      resultFile(this.name),
      `${JSON.stringify({ name: this.name, figures, budgets }, undefined, 2)}\n`,
    );
  }
}

export function shown(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}
