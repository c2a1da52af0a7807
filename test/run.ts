/**
 * `npm test`: the build, the checks that need no test, the suites. `npm test -- unit server` leaves the checks out
 * and runs these suites alone. The last line says how many tests passed and how many failed; a check, or a suite that
 * did not get to its end, counts as one failure.
 */
import { spawn, spawnSync, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { readResults } from "./support/results.ts";
import { ensureChromium } from "./vscode/ensure.ts";

// The specification's checker would send statistics of its use.
process.env["OPENSPEC_TELEMETRY"] = "0";

// On Windows the programs of npm and of the dependencies are scripts, which only a shell can start; no argument needs quoting.
const shell = process.platform === "win32";

const results = "test-results";
const longestSuite = 30 * 60_000;

interface Suite {
  readonly name: string;
  /** Milliseconds that one test may take unless it says otherwise. */
  readonly timeout: number;
  /** Runs in an editor, with the built extension. */
  readonly editor?: boolean;
}

/** A script of the manifest that must succeed. */
interface Check {
  readonly name: string;
  readonly isCheck: true;
}

/** What runs one after the other. */
type Lane = readonly (Suite | Check)[];

/** One after the other, each of lanes that run beside each other: their tests wait more than they work. */
const stages: readonly (readonly Lane[])[] = [
  [
    [{ name: "unit", timeout: 10_000 }],
    [
      { name: "check", isCheck: true },
      { name: "lint", isCheck: true },
      { name: "spec", isCheck: true },
    ],
  ],
  [
    [
      { name: "host", timeout: 60_000, editor: true },
      { name: "ui", timeout: 120_000, editor: true },
    ],
    [
      { name: "server", timeout: 60_000 },
      { name: "trouble", timeout: 120_000, editor: true },
    ],
  ],
];

interface Outcome {
  readonly what: string;
  readonly passed: number;
  readonly failed: number;
  readonly note?: string;
}

const wanted = process.argv.slice(2);
const names = stages
  .flat(2)
  .filter((part) => !isCheck(part))
  .map(({ name }) => name);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`No such suite: ${unknown.join(", ")}. There are: ${names.join(", ")}.`);
  process.exit(2);
}

const build = npmScript("build");
prepareBrowser();
const outcomes: Outcome[] = [build];
for (const stage of stages) {
  const lanes = stage
    .map((lane) => lane.filter(({ name }) => wanted.length === 0 || wanted.includes(name)))
    .filter((lane) => lane.length > 0);
  // Packaging builds anew, which must not happen under the tests beside.
  if (lanes.length > 1 && lanes.flat().some(isInEditor) && !process.env["TEST_VSIX"])
    outcomes.push(packageForTests());
  outcomes.push(...(await Promise.all(lanes.map((lane, index) => runLane(lane, index === 0)))).flat());
}

heading("summary");
for (const { what, passed, failed, note } of outcomes)
  console.log(`${failed > 0 ? "✖" : "✔"} ${what}: ${note ?? `${passed} passed, ${failed} failed`}`);
const sum = (key: "passed" | "failed"): number =>
  outcomes.reduce((total, outcome) => total + outcome[key], 0);
console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`);
process.exitCode = sum("failed") > 0 ? 1 : 0;

/** The suites' own time limits do not reckon with an installation. Where it fails, the tests that want it say why. */
function prepareBrowser(): void {
  try {
    ensureChromium();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
  }
}

function npmScript(script: string, ...args: readonly string[]): Outcome {
  heading(script);
  const succeeded = run("npm", ["run", "--silent", script, ...args]);
  return { what: script, passed: 0, failed: succeeded ? 0 : 1, note: succeeded ? "ok" : "failed" };
}

function packageForTests(): Outcome {
  const vsix = resolve(results, "extension.vsix");
  mkdirSync(results, { recursive: true });
  const outcome = npmScript("package", "--", "--out", vsix);
  process.env["TEST_VSIX"] = vsix;
  return outcome;
}

async function runLane(lane: Lane, live: boolean): Promise<readonly Outcome[]> {
  const laneOutcomes: Outcome[] = [];
  for (const part of lane)
    laneOutcomes.push(
      await (isCheck(part) ? runCheck(part, live) : runSuite(part, build.failed === 0, live)),
    );
  return laneOutcomes;
}

function isCheck(part: Suite | Check): part is Check {
  return "isCheck" in part;
}

function isInEditor(part: Suite | Check): boolean {
  return !isCheck(part) && part.editor === true;
}

/** @param live its output is shown as it comes; else in one piece at the end */
async function runCheck({ name }: Check, live: boolean): Promise<Outcome> {
  if (live) heading(name);
  const { succeeded, output } = await runBeside("npm", ["run", "--silent", name], live ? "inherit" : "pipe");
  if (!live) heading(name);
  process.stdout.write(output);
  return { what: name, passed: 0, failed: succeeded ? 0 : 1, note: succeeded ? "ok" : "failed" };
}

/** @param live its output is shown as it comes; else in one piece at the end */
async function runSuite(suite: Suite, built: boolean, live: boolean): Promise<Outcome> {
  const { name } = suite;
  rmSync(join(results, `${name}.json`), { force: true });
  if (!hasTests(join("test", name)))
    return { what: name, passed: 0, failed: 0, note: "skipped, no tests yet" };
  if (suite.editor && !built) return { what: name, passed: 0, failed: 1, note: "not run, the build failed" };
  if (live) heading(name);
  const [program, args] = name === "host" ? ["tsx", ["test/host/run.ts"]] : ["mocha", mochaArguments(suite)];
  const { succeeded, output } = await runBeside(program, args, live ? "inherit" : "pipe");
  if (!live) heading(name);
  process.stdout.write(output);
  const tests = readResults(results, name);
  if (!tests) return { what: name, passed: 0, failed: 1, note: "did not get to its end" };
  const count = (state: string): number => tests.filter((test) => test.state === state).length;
  const failed = count("failed");
  // All tests passed, and yet: an error outside of them.
  return { what: name, passed: count("passed"), failed: failed === 0 && !succeeded ? 1 : failed };
}

function mochaArguments({ name, timeout }: Suite): string[] {
  return [
    ...["--import=tsx", "--require", "test/support/ends.ts"],
    ...["--timeout", String(timeout)],
    ...["--reporter", "test/support/reporter.ts", "--reporter-option", `suite=${name}`],
    `test/${name}/**/*.test.ts`,
  ];
}

function hasTests(directory: string): boolean {
  if (!existsSync(directory)) return false;
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).some((file) =>
    file.endsWith(".test.ts"),
  );
}

/** Runs a program of npm's or of the dependencies, which npm put on PATH, and tells whether it succeeded. */
function run(program: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(program, args, { stdio: "inherit", shell, timeout: longestSuite });
  if (error) console.error(`${program}: ${error.message}`);
  return status === 0;
}

/** As {@link run}, beside others. */
async function runBeside(
  program: string,
  args: readonly string[],
  stdio: StdioOptions,
): Promise<{ readonly succeeded: boolean; readonly output: string }> {
  const child = spawn(program, args, { stdio, shell, timeout: longestSuite });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  try {
    const [status] = (await once(child, "close")) as [number | null];
    return { succeeded: status === 0, output };
  } catch (error) {
    return { succeeded: false, output: `${output}${program}: ${String(error)}\n` };
  }
}

function heading(text: string): void {
  console.log(`\n── ${text} ${"─".repeat(60 - text.length)}`);
}
