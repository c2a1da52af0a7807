import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Mocha from "mocha";
import type { TestResult, TestState } from "./results.ts";

/**
 * Prints like `spec`, and writes the result of each test to `<directory>/<suite>.json`. Options: `suite`, and
 * `directory` (default `test-results` in the working directory).
 */
export default class ResultReporter extends Mocha.reporters.Spec {
  constructor(
    runner: Mocha.Runner,
    options: Mocha.MochaOptions & { reporterOption?: Record<string, string> },
  ) {
    super(runner, options);
    // The command line uses the singular name, the API the plural.
    const { suite, directory = "test-results" } = {
      ...options.reporterOption,
      ...(options.reporterOptions as Record<string, string> | undefined),
    };
    if (!suite) throw new Error("The reporter needs the name of the suite: --reporter-option suite=NAME");
    const { EVENT_TEST_PASS, EVENT_TEST_FAIL, EVENT_TEST_PENDING, EVENT_RUN_END } = Mocha.Runner.constants;
    const tests: (() => TestResult)[] = [];
    // Hooks after a failed test add to its error.
    const record = (state: TestState) => (test: Mocha.Test, error?: Error) =>
      void tests.push(() => ({
        title: test.title,
        fullTitle: test.fullTitle(),
        state,
        milliseconds: test.duration ?? 0,
        ...(error && { error: error.message }),
      }));
    runner.on(EVENT_TEST_PASS, record("passed"));
    runner.on(EVENT_TEST_FAIL, record("failed"));
    runner.on(EVENT_TEST_PENDING, record("pending"));
    runner.once(EVENT_RUN_END, () => {
      mkdirSync(directory, { recursive: true });
      writeFileSync(
        join(directory, `${suite}.json`),
        JSON.stringify({ tests: tests.map((test) => test()) }, undefined, 2),
      );
    });
  }
}
