import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { downloadAndUnzipVSCode, runTests } from "@vscode/test-electron";
import { ensureVsCode } from "../vscode/ensure.ts";
import { writeSettings, type Settings } from "../vscode/host.ts";
import { tempDir } from "./temp.ts";

export const repository = fileURLToPath(new URL("../..", import.meta.url));

export interface ExtensionHostRun {
  /** The extension's folder; by default the repository. */
  readonly extension?: string;
  /** A CommonJS module whose exported `run()` rejects if a test failed. */
  readonly tests: string;
  /** The folder that the window opens; by default none. */
  readonly folder?: string;
  readonly settings?: Settings;
  /** Added to the environment of the extension host. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Runs a test module in the extension host of a real VS Code with a new profile. Rejects if a test failed. Uses the VS
 * Code of {@link desktopVsCode}, otherwise the one from npm.
 */
export async function runInExtensionHost(run: ExtensionHostRun): Promise<void> {
  const executable = (await desktopVsCode()) ?? vsCodeFromNpm();
  const userDirectory = tempDir("data");
  writeSettings(userDirectory, run.settings);
  await runTests({
    vscodeExecutablePath: executable,
    extensionDevelopmentPath: run.extension ?? repository,
    extensionTestsPath: resolve(run.tests),
    launchArgs: [
      ...(run.folder === undefined ? [] : [run.folder]),
      `--user-data-dir=${userDirectory}`,
      `--extensions-dir=${tempDir("ext")}`,
    ],
    ...(run.env ? { extensionTestsEnv: run.env } : {}),
  });
}

/**
 * The desktop VS Code, downloaded if necessary. Undefined if there is no display, or if it can't be downloaded within a
 * few seconds; `VSCODE_TEST_FROM=npm` or `desktop` overrides this. `VSCODE_TEST_VERSION` names one other than the newest.
 */
export async function desktopVsCode(): Promise<string | undefined> {
  const from = process.env["VSCODE_TEST_FROM"];
  if (from === "npm") return undefined;
  if (from !== "desktop") {
    const display = process.env["DISPLAY"] ?? process.env["WAYLAND_DISPLAY"];
    if (process.platform === "linux" && !display) return undefined;
    if (!(await canDownload())) return undefined;
  }
  return await downloadAndUnzipVSCode(process.env["VSCODE_TEST_VERSION"] ?? "stable");
}

async function canDownload(): Promise<boolean> {
  try {
    const releases = "https://update.code.visualstudio.com/api/releases/stable";
    return (await fetch(releases, { method: "HEAD", signal: AbortSignal.timeout(4_000) })).ok;
  } catch {
    return false;
  }
}

function vsCodeFromNpm(): string {
  ensureVsCode();
  return join(repository, "test", "vscode", "code");
}
