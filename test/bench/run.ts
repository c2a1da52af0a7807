/**
 * Runs all benchmarks, or the named ones (`npx tsx test/bench/run.ts launch twenty`), one after the other, each in its
 * own process. Exits with 1 if one failed or exceeded its budget. The extension must have been built.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../support/extension-host.ts";

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

const failed = (wanted.length > 0 ? wanted : all).filter((name) => {
  const args = ["--import=tsx", join(here, `${name}.ts`)];
  return spawnSync(process.execPath, args, { cwd: repository, stdio: "inherit" }).status !== 0;
});
console.log(failed.length > 0 ? `\nNot within budget: ${failed.join(", ")}` : "\nAll within budget");
process.exitCode = failed.length > 0 ? 1 : 0;
