import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { installVsix } from "../../vscode/host.ts";

/** The packaged extension; made on first use. */
export const packagedExtension = once(packageExtension);

/** An extensions directory with the packaged extension installed; made on first use. */
export const installedExtension = once(() => install(packagedExtension()));

/** A new extensions directory with this package. */
function install(vsix: string): string {
  const extensionsDirectory = tempDir("ext");
  installVsix(vsix, { userDirectory: tempDir("data"), extensionsDirectory });
  return extensionsDirectory;
}

/** An extensions directory with a later version of the extension, whose protocol is newer. */
export function newerExtension(): string {
  const folder = tempDir("newer");
  for (const name of readdirSync(repository))
    if (
      /^(build|l10n|media|src|docs|package\b.*|tsconfig\.json|esbuild\..*|[A-Z]+\.md|LICENSE|\.vscodeignore)$/.test(
        name,
      )
    )
      cpSync(join(repository, name), join(folder, name), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
  for (const [file, [before, after]] of Object.entries({
    "package.json": [/"version": "[\d.]+"/, '"version": "99.0.0"'],
    "src/rpc/contract.ts": [/PROTOCOL_VERSION = \d+/, "PROTOCOL_VERSION = 99"],
  } as const)) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    assert.match(text, before);
    writeFileSync(path, text.replace(before, after));
  }
  const vsix = join(folder, "newer.vsix");
  execFileSync("npm", ["run", "package", "--", "--out", vsix], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return install(vsix);
}

export interface SmallExtension {
  readonly name: string;
  readonly activationEvent: string;
  /** The CommonJS module. */
  readonly source: string;
}

/** Packages an extension and installs it next to the extension under test. */
export function installBeside(
  { name, activationEvent, source }: SmallExtension,
  extensionsDirectory = installedExtension(),
): void {
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
  installVsix(vsix, { userDirectory: tempDir("data"), extensionsDirectory });
}

/** A new extensions directory with the packaged extension and this one. */
export function extensionBeside(other: SmallExtension): string {
  const extensionsDirectory = install(packagedExtension());
  installBeside(other, extensionsDirectory);
  return extensionsDirectory;
}

/** An extension that opens the view of the tasks at the start, because VS Code has no option for that. */
export const viewOpener = join(repository, "test", "start", "opener");

/** An extensions directory with the packaged extension, and with the one that opens its view. */
export function extensionWithOpener(): string {
  const source = readFileSync(join(viewOpener, "opener.cjs"), "utf8");
  return extensionBeside({ name: "view-opener", activationEvent: "onStartupFinished", source });
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
