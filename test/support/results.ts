import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type TestState = "passed" | "failed" | "pending";

export interface TestResult {
  readonly title: string;
  /** Includes the titles of the enclosing groups. */
  readonly fullTitle: string;
  readonly state: TestState;
  readonly milliseconds: number;
  /** Why the test failed. */
  readonly error?: string;
}

/** The results that the reporter wrote for a suite. Undefined if the suite didn't finish. */
export function readResults(directory: string, suite: string): readonly TestResult[] | undefined {
  const path = join(directory, `${suite}.json`);
  if (!existsSync(path)) return undefined;
  return (JSON.parse(readFileSync(path, "utf8")) as { tests: TestResult[] }).tests;
}
