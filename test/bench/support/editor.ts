import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { installedExtension } from "../../ui/support/extension.ts";
import type { Workbench } from "../../ui/support/workbench.ts";
import { installVsix } from "../../vscode/host.ts";

export interface SmallExtension {
  readonly name: string;
  readonly activationEvent: string;
  /** The CommonJS module. */
  readonly source: string;
}

/** Packages an extension and installs it next to the extension under test. */
export function installBeside({ name, activationEvent, source }: SmallExtension): void {
  const folder = tempDir("small");
  const manifest = {
    name,
    publisher: "bench",
    version: "1.0.0",
    engines: { vscode: "^1.100.0" },
    main: "./main.cjs",
    activationEvents: [activationEvent],
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "main.cjs"), source);
  mkdirSync(join(folder, "out"));
  const vsix = join(folder, "out", `${name}.vsix`);
  const vsce = join(repository, "node_modules", "@vscode", "vsce", "vsce");
  const args = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "-o", vsix];
  execFileSync(process.execPath, [vsce, ...args], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  installVsix(vsix, { userDirectory: tempDir("data"), extensionsDirectory: installedExtension() });
}

/** A window tall enough for {@link activationTime} to see all rows of its list. */
export const tallViewport = { width: 1_280, height: 2_400 };

/** Milliseconds that VS Code reports for loading an extension's code and calling its `activate()`. */
export async function activationTime(workbench: Workbench, name: RegExp): Promise<number> {
  const rows = workbench.page.locator(".runtime-extensions-editor .monaco-list-row");
  if ((await rows.count()) === 0) await workbench.runCommand("Developer: Show Running Extensions");
  const time = rows.filter({ hasText: name }).locator(".activation-time", { hasText: /\d+ms/ });
  await time.waitFor({ timeout: 60_000 });
  return Number(/(\d+)ms/.exec(await time.innerText())?.[1]);
}

/** The name under which VS Code lists the extension under test. */
export const ourName = /Async Agents for OpenCode|opencode-async-agents/;
