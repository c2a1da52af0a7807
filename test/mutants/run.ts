/**
 * `npm run mutants -- tools records`, or without names for all parts: changes the source in many small ways, one at a
 * time, and counts the changes that no unit test notices. Only mutants whose code or tests changed since the last run
 * are run again. A large part runs a few files at a time, so that a run that is stopped can be continued.
 * `test-results/mutants/PART.json` and the output list those that survived. Exits with 1 if fewer than 85% of a part's
 * mutants were noticed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../support/extension-host.ts";

const PASSING_SCORE = 85;
/** In bytes of source. Each run begins with running all tests of the part without a change. */
const LARGEST_RUN = 64 * 1024;

/** The files that are changed, and the tests that should notice. Without a star, Mocha takes a pattern for a file name. */
interface Part {
  readonly source: readonly string[];
  readonly tests: readonly string[];
}

/** See `test/support/cases.ts`. With all cases, a run would take ten times as long. */
const CASES_STEP = 20;

const PARTS: Readonly<Record<string, Part>> = {
  engine: {
    source: allIn("src/engine"),
    tests: ["engine", "tools", "daemon"]
      .flatMap((folder) => allIn(`test/unit/${folder}`))
      .filter((file) => file.endsWith(".test.ts")),
  },
  tools: { source: allIn("src/tools"), tests: ["test/unit/tools/*.test.ts"] },
  rpc: { source: allIn("src/rpc"), tests: ["test/unit/rpc/*.test.ts"] },
  records: {
    source: ["src/opencode/record-codec.ts"],
    tests: ["test/unit/opencode/record-codec.test.ts"],
  },
  revert: {
    source: ["src/ui/changes/accepted-changes.ts", "src/daemon/revert-plan.ts", "src/daemon/take-back.ts"],
    tests: [
      "test/unit/ui/changes/*.test.ts",
      "test/unit/daemon/revert-plan.test.ts",
      "test/unit/daemon/take-back.test.ts",
    ],
  },
  merge: {
    source: ["bring-back", "merge", "plan-contents", "predict", "predictions", "take-in", "write-back"].map(
      (name) => `src/git/${name}.ts`,
    ),
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
  const runs = inRuns(source);
  for (const [index, files] of runs.entries()) {
    console.log(`\n── ${name}${runs.length > 1 ? `, ${index + 1} of ${runs.length}` : ""}`);
    // The results of other files are kept, so the last run has the whole part's.
    if (!runStryker(name, files, tests, index === runs.length - 1)) {
      process.exitCode = 1;
      return;
    }
  }
}

/** @returns whether it came to its end and, with the `last` run of a part, enough mutants were noticed */
function runStryker(
  name: string,
  mutate: readonly string[],
  tests: readonly string[],
  last: boolean,
): boolean {
  const common = JSON.parse(readFileSync(join(here, "stryker.json"), "utf8")) as object;
  const config = join(results, `${name}.config.json`);
  writeFileSync(
    config,
    JSON.stringify({
      ...common,
      mochaOptions: { spec: tests },
      mutate,
      incremental: true,
      incrementalFile: join(results, `${name}.incremental.json`),
      reporters: ["progress-append-only", ...(last ? ["clear-text", "json"] : [])],
      jsonReporter: { fileName: join(results, `${name}.json`) },
      thresholds: { high: 100, low: PASSING_SCORE, break: last ? PASSING_SCORE : null },
    }),
  );
  const { status } = spawnSync(process.execPath, [stryker, "run", config], {
    cwd: repository,
    env: { ...process.env, TEST_CASES_STEP: String(CASES_STEP) },
    stdio: "inherit",
  });
  return status === 0;
}

function inRuns(files: readonly string[]): readonly (readonly string[])[] {
  const runs: string[][] = [];
  let size = Infinity;
  for (const file of files) {
    const bytes = statSync(join(repository, file)).size;
    if (size + bytes > LARGEST_RUN) {
      runs.push([]);
      size = 0;
    }
    runs.at(-1)?.push(file);
    size += bytes;
  }
  return runs;
}

function allIn(folder: string): readonly string[] {
  return readdirSync(join(repository, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"))
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`);
}
