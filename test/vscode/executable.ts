/**
 * Takes the arguments of the desktop's executable and runs extension tests in the extension host of a VS Code server,
 * with a headless Chromium as its workbench. Ends with the status of the tests.
 *
 *   code [folder] --extensionDevelopmentPath=DIR --extensionTestsPath=FILE [--user-data-dir=DIR] [--extensions-dir=DIR]
 *
 * Other arguments are ignored. `VSCODE_TEST_TIMEOUT` limits the run (seconds, default 900).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { format } from "node:util";
import { tempDir } from "../support/temp.ts";
import { openBrowser, startVsCodeServer, writeSettings } from "./host.ts";

/** Messages of the workbench that are irrelevant to the tests. */
const noise =
  /^(\[reconnection-grace|Resolv|Creating a socket|Ignoring fetching|Updating additional|\[AgentHost|\[AccountPolicy|Creation of workbench|Timed out waiting for authentication)|ServiceWorker for scope/;

const values = new Map<string, string>();
let folder: string | undefined;
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--([^=]+)(?:=(.*))?$/s.exec(argument) ?? [];
  if (name !== undefined) values.set(name, value ?? "");
  else folder ??= argument;
}

process.exitCode = await main();

async function main(): Promise<number> {
  const userDirectory = values.get("user-data-dir") ?? tempDir("data");
  if (!values.has("user-data-dir")) writeSettings(userDirectory);
  const server = await startVsCodeServer({
    userDirectory,
    extensionsDirectory: values.get("extensions-dir") ?? tempDir("ext"),
    extensionTests: true,
    workspaceTrust: !values.has("disable-workspace-trust"),
  });
  const { page, close } = await openBrowser();
  const ended = deferred<number>();
  await page.exposeFunction("codeAutomationLog", (type: string, args: unknown[]) => {
    const text = format(...args);
    if (!noise.test(text)) (type === "error" ? process.stderr : process.stdout).write(`${text}\n`);
  });
  await page.exposeFunction("codeAutomationExit", (code: number) => ended.resolve(code));
  page.on("crash", () => ended.reject(new Error("The workbench's page crashed")));
  void server.ended.then(() => ended.reject(new Error("The VS Code server ended")));
  try {
    await page.goto(
      server.address({
        folder,
        extensionDevelopmentPath: values.get("extensionDevelopmentPath"),
        extensionTestsPath: values.get("extensionTestsPath"),
      }),
    );
    const seconds = Number(process.env["VSCODE_TEST_TIMEOUT"] ?? 900);
    const code = await Promise.race([ended.promise, delay(seconds * 1000, undefined, { ref: false })]);
    if (code !== undefined) return code;
    mkdirSync("test-results", { recursive: true });
    const path = join("test-results", "vscode-timeout.png");
    await page.screenshot({ path });
    throw new Error(`The tests did not end within ${seconds} s; see ${path}`);
  } finally {
    ended.promise.catch(() => {});
    await close();
    await server.stop();
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function deferred<T>(): Deferred<T> {
  let settle: Omit<Deferred<T>, "promise"> | undefined;
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
}
