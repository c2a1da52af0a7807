import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { installVsix } from "../../vscode/host.ts";

/** The packaged extension; made on first use. */
export const packagedExtension = once(packageExtension);

/** An extensions directory with the packaged extension installed; made on first use. */
export const installedExtension = once(() => {
  const extensionsDirectory = tempDir("ext");
  installVsix(packagedExtension(), { userDirectory: tempDir("data"), extensionsDirectory });
  return extensionsDirectory;
});

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

/** Builds and packages the extension as for publishing; `TEST_VSIX` names an existing package to use instead. */
function packageExtension(): string {
  const given = process.env["TEST_VSIX"];
  if (given) return given;
  const vsix = join(tempDir("vsix"), "extension.vsix");
  execFileSync("npm", ["run", "package", "--", "--out", vsix], {
    cwd: repository,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return vsix;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
