/** The environment variables by which the runner tells the extension host what to run. */
export const hostVariables = {
  /** The bundle of all test files. */
  tests: "TEST_BUNDLE",
  /** The folder for the results. */
  results: "TEST_RESULTS",
  /** Part of the titles to run; empty for all. */
  grep: "TEST_GREP",
} as const;
