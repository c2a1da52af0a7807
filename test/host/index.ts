import Mocha from "mocha";
import ResultReporter from "../support/reporter.ts";
import { hostVariables } from "./variables.ts";

/** Runs the tests inside the extension host. Rejects when one fails. */
export async function run(): Promise<void> {
  const grep = process.env[hostVariables.grep];
  const mocha = new Mocha({
    ui: "bdd",
    color: false,
    timeout: 60_000,
    reporter: ResultReporter,
    reporterOptions: { suite: "host", directory: process.env[hostVariables.results] },
    ...(grep ? { grep } : {}),
  });
  mocha.addFile(process.env[hostVariables.tests] ?? "");
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) throw new Error(`${failures} failed`);
}
