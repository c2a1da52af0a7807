/**
 * `npm run mutants -- tools records`, or without names for all parts: changes the source in many small ways, one at a
 * time, and counts the changes that no unit test notices. Only mutants whose code or tests changed since the last run
 * are run again. `test-results/mutants/PART.json` and the output list those that survived. Exits with 1 if fewer than
 * 85% of a part's mutants were noticed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../support/extension-host.ts";

const PASSING_SCORE = 85;

/** What is changed, and the tests that should notice. Without a star, Mocha takes a pattern for a file name. */
interface Part {
  readonly source: readonly string[];
  readonly tests: readonly string[];
}

const PARTS: Readonly<Record<string, Part>> = {
  engine: {
    source: ["src/engine/**/*.ts"],
    tests: ["engine", "tools", "daemon"].map((folder) => `test/unit/${folder}/**/*.test.ts`),
  },
  tools: { source: ["src/tools/**/*.ts"], tests: ["test/unit/tools/*.test.ts"] },
  rpc: { source: ["src/rpc/**/*.ts"], tests: ["test/unit/rpc/*.test.ts"] },
  records: {
    source: ["src/opencode/record-codec.ts"],
    tests: ["test/unit/opencode/record-codec.test.ts"],
  },
  revert: {
    source: ["src/ui/changes/accepted-changes.ts", "src/daemon/{revert-plan,take-back}.ts"],
    tests: [
      "test/unit/ui/changes/*.test.ts",
      "test/unit/daemon/revert-plan.test.ts",
      "test/unit/daemon/take-back.test.ts",
    ],
  },
  merge: {
    source: ["src/git/{bring-back,merge,plan-contents,predict,predictions,take-in,write-back}.ts"],
    tests: ["bring-back", "discard", "generated-merges", "predictions", "take-in", "write-back"].map(
      (name) => `test/unit/git/${name}.test.ts`,
    ),
  },
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`No such part: ${unknown.join(", ")}. There are: ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}

const here = import.meta.dirname;
const results = join(repository, "test-results", "mutants");
const stryker = join(here, "node_modules", "@stryker-mutator", "core", "bin", "stryker.js");
if (!existsSync(stryker)) install();
mkdirSync(results, { recursive: true });
for (const [name, part] of Object.entries(PARTS))
  if (wanted.length === 0 || wanted.includes(name)) runPart(name, part);

function install(): void {
  // On Windows, npm is a script, which needs a shell.
  const shell = process.platform === "win32";
  const { status } = spawnSync("npm", ["ci"], { cwd: here, stdio: "inherit", shell });
  if (status !== 0) throw new Error("The mutation tester could not be installed.");
}

function runPart(name: string, { source, tests }: Part): void {
  console.log(`\n── ${name}`);
  const common = JSON.parse(readFileSync(join(here, "stryker.json"), "utf8")) as object;
  const config = join(results, `${name}.config.json`);
  writeFileSync(
    config,
    JSON.stringify({
      ...common,
      mochaOptions: { spec: tests },
      mutate: source,
      incremental: true,
      incrementalFile: join(results, `${name}.incremental.json`),
      jsonReporter: { fileName: join(results, `${name}.json`) },
      thresholds: { high: 100, low: PASSING_SCORE, break: PASSING_SCORE },
    }),
  );
  const { status } = spawnSync(process.execPath, [stryker, "run", config], {
    cwd: repository,
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}
