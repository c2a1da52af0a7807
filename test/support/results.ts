import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type TestState = "passed" | "failed" | "pending";

export interface TestResult {
  readonly title: string;
  /** With the titles of the groups around it. */
  readonly fullTitle: string;
  readonly state: TestState;
  readonly milliseconds: number;
  /** Why it failed. */
  readonly error?: string;
}

/** What the reporter wrote of a suite. Undefined: the suite did not get to its end. */
export function readResults(directory: string, suite: string): readonly TestResult[] | undefined {
  const path = join(directory, `${suite}.json`);
  if (!existsSync(path)) return undefined;
  return (JSON.parse(readFileSync(path, "utf8")) as { tests: TestResult[] }).tests;
}
