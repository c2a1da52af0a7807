/**
 * `npm test`: the build, the checks that need no test, the suites. `npm test -- unit server` leaves the checks out
 * and runs these suites alone; files and `--grep` limit them further, and `--repeat 5` counts which tests fail how often.
 * The last line says how many tests passed, failed and were skipped. A check that fails, and a suite that has no tests or
 * did not get to its end, count as one failure; a suite that cannot run on this machine counts as one that was skipped.
 */
import { spawn, spawnSync, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { readResults, type TestResult } from "./support/results.ts";
import { countsOf, suiteOf, wantedBy, type Wanted } from "./support/wanted.ts";
import { ensureChromium, ensureVsCode } from "./vscode/ensure.ts";

// Keeps the specification's checker from sending usage statistics.
process.env["OPENSPEC_TELEMETRY"] = "0";

// On Windows, npm and the dependencies' programs are scripts, which need a shell; no argument needs quoting.
const shell = process.platform === "win32";

const results = "test-results";
/** Two cores that are half busy with another program need most of it. */
const longestSuite = 75 * 60_000;
/** The files of tests that take longer than their size suggests. */
const takesLong =
  /(daemon|faults|killed-worktrees|connection-own|agent-tools|generated-merges|kill)\.test\.ts$/;

interface Suite {
  readonly name: string;
  /** Milliseconds that one test may take unless it says otherwise. */
  readonly timeout: number;
  /** Runs in an editor, with the built extension. */
  readonly editor?: boolean;
  /** Controls a window of the VS Code from npm, which supports only Linux x64. */
  readonly window?: boolean;
}

/** A script of the manifest that must succeed. */
interface Check {
  readonly name: string;
  readonly isCheck: true;
}

/** Suites that run one after the other. */
type Lane = readonly (Suite | Check)[];

/**
 * Groups of lanes; the lanes of a group run in parallel, because their tests wait as much as they work. With less than
 * four cores those with tests run one after the other: several editors and servers at once would exceed the time limits
 * of tests.
 */
const stages: readonly (readonly Lane[])[] = [
  [
    [{ name: "unit", timeout: 60_000 }],
    [
      { name: "check", isCheck: true },
      { name: "spec", isCheck: true },
      { name: "knip", isCheck: true },
    ],
    [{ name: "lint", isCheck: true }],
  ],
  [
    [{ name: "ui", timeout: 300_000, editor: true, window: true }],
    [{ name: "server", timeout: 120_000 }],
    [
      { name: "host", timeout: 60_000, editor: true },
      { name: "trouble", timeout: 300_000, editor: true, window: true },
    ],
  ],
];

interface Outcome {
  readonly what: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped?: number;
  readonly note?: string;
  /** How long it took; the build and the package have none. */
  readonly minutes?: number;
  readonly failures?: readonly TestResult[];
}

const showsWindows = process.platform === "linux" && process.arch === "x64";

const names = stages
  .flat(2)
  .filter((part) => !isCheck(part))
  .map(({ name }) => name);
const wanted = readWanted();

const build = npmScript("build");
installEditor();
const outcomes: Outcome[] = [build];
for (let run = 1; run <= wanted.repeat; run++) {
  if (wanted.repeat > 1) heading(`run ${run} of ${wanted.repeat}`);
  for (const stage of stages) outcomes.push(...(await runStage(stage)));
}

heading("summary");
for (const outcome of outcomes) {
  const mark = outcome.failed > 0 ? "✖" : outcome.skipped ? "-" : "✔";
  const time = outcome.minutes === undefined ? "" : ` (${outcome.minutes.toFixed(1)} minutes)`;
  console.log(`${mark} ${outcome.what}: ${outcome.note ?? counts([outcome])}${time}`);
  for (const { fullTitle, error = "" } of outcome.failures ?? [])
    console.log(`    ${fullTitle}\n${error.replace(/^/gm, "        ")}`);
}
if (wanted.repeat > 1) {
  heading("tests that failed");
  const failed = outcomes.flatMap(({ what, failures = [] }) =>
    failures.map(({ fullTitle }) => `${what}: ${fullTitle}`),
  );
  console.log(countsOf(failed, wanted.repeat).join("\n") || "none");
}
console.log(`\n${counts(outcomes)}`);
process.exitCode = outcomes.some(({ failed }) => failed > 0) ? 1 : 0;

function readWanted(): Wanted {
  try {
    return wantedBy(process.argv.slice(2), names);
  } catch (error) {
    console.error((error as Error).message);
    process.exit(2);
  }
}

/** The wording of the last line, which other programs read. */
function counts(counted: readonly Outcome[]): string {
  const sum = (key: "passed" | "failed" | "skipped"): number =>
    counted.reduce((total, outcome) => total + (outcome[key] ?? 0), 0);
  return `${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`;
}

/**
 * Two suites beside each other would both begin to install, and the time limits of tests do not reckon with it. Where it
 * fails, the tests that want it say why.
 */
function installEditor(): void {
  const wantsWindow = stages
    .flat()
    .some((lane) => wantedOf(lane).some((part) => !isCheck(part) && part.window));
  try {
    if (wantsWindow && showsWindows) ensureVsCode();
    else ensureChromium();
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

async function runStage(stage: readonly Lane[]): Promise<readonly Outcome[]> {
  const lanes = stage.map(wantedOf).filter((lane) => lane.length > 0);
  // Packaging builds again, which must not happen during other tests.
  const packaged = lanes.flat().some(needsPackage) && !process.env["TEST_VSIX"] ? [packageForTests()] : [];
  const isAlone = (lane: Lane): boolean => availableParallelism() < 4 && !lane.every(isCheck);
  const stageOutcomes = [...packaged];
  for (const lane of lanes.filter(isAlone)) stageOutcomes.push(...(await runLane(lane, true)));
  const others = lanes.filter((lane) => !isAlone(lane));
  const ran = await Promise.all(others.map((lane, index) => runLane(lane, index === 0)));
  return [...stageOutcomes, ...ran.flat()];
}

async function runLane(lane: Lane, live: boolean): Promise<readonly Outcome[]> {
  const laneOutcomes: Outcome[] = [];
  for (const part of lane) {
    const start = performance.now();
    const outcome = await (isCheck(part) ? runCheck(part, live) : runSuite(part, build.failed === 0, live));
    laneOutcomes.push({ ...outcome, minutes: (performance.now() - start) / 60_000 });
  }
  return laneOutcomes;
}

function wantedOf(lane: Lane): Lane {
  const { suites, grep, repeat } = wanted;
  const all = suites.length === 0;
  return lane.filter((part) =>
    isCheck(part) ? all && !grep && repeat === 1 : all || suites.includes(part.name),
  );
}

function isCheck(part: Suite | Check): part is Check {
  return "isCheck" in part;
}

function needsPackage(part: Suite | Check): boolean {
  return !isCheck(part) && part.window === true;
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
  if (suite.window && !showsWindows)
    return { what: name, passed: 0, failed: 0, skipped: 1, note: "skipped as a whole, it needs Linux x64" };
  if (suite.editor && !built) return { what: name, passed: 0, failed: 1, note: "not run, the build failed" };
  if (live) heading(name);
  const [program, args] =
    name === "host"
      ? ["tsx", ["test/host/run.ts", ...(wanted.grep === undefined ? [] : [wanted.grep])]]
      : ["mocha", mochaArguments(suite)];
  const { succeeded, output, ending } = await runBeside(program, args, live ? "inherit" : "pipe");
  if (!live) heading(name);
  process.stdout.write(output);
  const tests = readResults(results, name);
  if (!tests) return { what: name, passed: 0, failed: 1, note: "did not get to its end" };
  if (tests.length === 0 && wanted.grep === undefined)
    return { what: name, passed: 0, failed: 1, note: "has no tests" };
  const count = (state: string): number => tests.filter((test) => test.state === state).length;
  const failures = tests.filter(({ state }) => state === "failed");
  const failed = failures.length;
  const endedBadly = failed === 0 && !succeeded;
  return {
    what: name,
    ...(endedBadly && { note: `${tests.length} tests ran, none failed, and yet the suite did: ${ending}` }),
    passed: count("passed"),
    failed: endedBadly ? 1 : failed,
    skipped: count("pending"),
    failures,
  };
}

function mochaArguments({ name, timeout }: Suite): string[] {
  return [
    ...["--import=tsx", "--require", "test/support/ends.ts"],
    // Another lane of the stage takes the other half. With one job, Mocha would load all files in one process, in a way
    // that leaves out `import.meta.resolve`.
    ...["--parallel", "--jobs", String(Math.max(2, Math.ceil(availableParallelism() / 2)))],
    ...["--timeout", String(timeout)],
    ...["--reporter", "test/support/reporter.ts", "--reporter-option", `suite=${name}`],
    ...(wanted.grep === undefined ? [] : ["--grep", wanted.grep]),
    ...testFiles(name),
  ];
}

/** The longest first, because one that begins last would keep the others waiting. */
function testFiles(suite: string): readonly string[] {
  const named = wanted.files.filter((file) => suiteOf(file) === suite);
  if (named.length > 0) return named;
  const folder = join("test", suite);
  const cost = (file: string): number => statSync(file).size + (takesLong.test(file) ? 1e6 : 0);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(folder, file))
    .toSorted((one, other) => cost(other) - cost(one));
}

/** Runs npm or a program of the dependencies, which npm puts on PATH, and returns whether it succeeded. */
function run(program: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(program, args, { stdio: "inherit", shell, timeout: longestSuite });
  if (error) console.error(`${program}: ${error.message}`);
  return status === 0;
}

/** Like {@link run}, in parallel with others. */
async function runBeside(
  program: string,
  args: readonly string[],
  stdio: StdioOptions,
): Promise<{ readonly succeeded: boolean; readonly output: string; readonly ending: string }> {
  const child = spawn(program, args, { stdio, shell, timeout: longestSuite });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  try {
    const [status, signal] = (await once(child, "close")) as [number | null, string | null];
    return { succeeded: status === 0, output, ending: signal ?? `exit code ${status}` };
  } catch (error) {
    return { succeeded: false, output: `${output}${program}: ${String(error)}\n`, ending: String(error) };
  }
}

function heading(text: string): void {
  console.log(`\n── ${text} ${"─".repeat(60 - text.length)}`);
}
