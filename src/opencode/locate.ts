import { access, constants, readFile, realpath, stat } from "node:fs/promises";
import { posix, win32 } from "node:path";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { sentence } from "../engine/sentence.ts";
import { failures } from "./failures.ts";
import { privateExecutables } from "./install.ts";
import { readVersion } from "./version-look.ts";
import { compareVersions, supportOf, type Support } from "./versions.ts";

/** The parts of the file system that the search needs. */
interface FileProbe {
  /** Whether the path is an executable file, following links. */
  isExecutable(path: string): Promise<boolean>;
  exists(path: string): Promise<boolean>;
  /** Undefined if the file cannot be read. */
  readText(path: string): Promise<string | undefined>;
  /** The path without links. */
  realPath(path: string): Promise<string>;
  /** The version that an executable reports. Undefined if it reports none. */
  version(executable: string): Promise<string | undefined>;
}

export interface LocateOptions {
  /** The path that a user configured. Empty if none. */
  readonly configuredPath: string;
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly files: FileProbe;
}

/** An executable of OpenCode, and the version that it reports. Undefined if it reports none or was not asked. */
interface Installed {
  readonly executable: string;
  readonly version: string | undefined;
}

/** The executable to use. */
export interface FoundOpenCode extends Installed {
  /** The other executables that were found. */
  readonly others: readonly Installed[];
}

/**
 * OpenCode's executable on this machine. Throws a `ConnectionError` if there is none, or if several are all of versions
 * that are not supported. If there is only one, its version is checked before it is started; see `requireSupported`.
 */
export async function findOpenCode(
  options: Pick<LocateOptions, "configuredPath" | "env" | "home">,
): Promise<FoundOpenCode> {
  const { env } = options;
  const files = { ...diskProbe, version: (executable: string) => readVersion(executable, env) };
  const located = await locateOpenCode({ ...options, platform: process.platform, files });
  if ("code" in located) throw new ConnectionError(located);
  return located;
}

const diskProbe: Omit<FileProbe, "version"> = {
  async isExecutable(path) {
    try {
      await access(path, constants.X_OK);
      return (await stat(path)).isFile();
    } catch {
      return false;
    }
  },
  exists: (path) =>
    stat(path).then(
      () => true,
      () => false,
    ),
  readText: (path) => readFile(path, "utf8").catch(() => undefined),
  realPath: (path) => realpath(path),
};

/**
 * Finds OpenCode's executable: at the configured path, otherwise the newest supported one on PATH, where installers put
 * it, and in the extension's own storage.
 */
export async function locateOpenCode(options: LocateOptions): Promise<FoundOpenCode | ConnectionFailure> {
  const configured = options.configuredPath.trim();
  const located = configured ? [await locateConfigured(configured, options)] : await locateAll(options);
  const executables = located.filter((one) => typeof one === "string");
  const [first, second] = executables;
  if (first === undefined) return located.find(isFailure) ?? failures.notFound();
  // A look takes long, and its server may be running already.
  if (second === undefined) return { executable: first, version: undefined, others: [] };
  const { files } = options;
  return choose(
    await Promise.all(
      executables.map(async (executable) => ({ executable, version: await files.version(executable) })),
    ),
  );
}

/** An executable, or why it cannot be used. */
type Located = string | ConnectionFailure;

function isFailure(located: Located): located is ConnectionFailure {
  return typeof located !== "string";
}

/** The newest supported one; of those that are equally new, the first one. */
function choose(installed: readonly Installed[]): FoundOpenCode | ConnectionFailure {
  const are = (support: Support) => installed.filter(({ version }) => supportOf(version) === support);
  const [chosen] = [...are("supported").sort(newestFirst), ...are("unknown")];
  if (chosen) return { ...chosen, others: installed.filter((one) => one !== chosen) };
  const [tooNew] = are("too-new");
  const [newest] = [...installed].sort(newestFirst);
  return tooNew ? failures.tooNew(tooNew.version ?? "") : failures.tooOld(newest?.version ?? "");
}

function newestFirst({ version: one = "" }: Installed, { version: other = "" }: Installed): number {
  return compareVersions(other, one);
}

async function locateAll(options: LocateOptions): Promise<Located[]> {
  const { files } = options;
  const all = new Map<string, Located>();
  for (const candidate of candidates(options)) {
    if (!(await files.isExecutable(candidate))) continue;
    const located = await behindShim(candidate, options);
    const key = await files.realPath(isFailure(located) ? candidate : located);
    if (!all.has(key)) all.set(key, located);
  }
  return [...all.values()];
}

async function locateConfigured(configured: string, options: LocateOptions): Promise<Located> {
  const path = paths(options);
  const file = /^~[\\/]/.test(configured) ? path.join(options.home, configured.slice(2)) : configured;
  if (!path.isAbsolute(file)) return failures.badPath(configured, sentence("the path isn't absolute"));
  if (!(await options.files.exists(file)))
    return failures.badPath(configured, sentence("there is no such file"));
  if (!(await options.files.isExecutable(file)))
    return failures.badPath(configured, sentence("it isn't an executable file"));
  return behindShim(file, options);
}

function* candidates(options: LocateOptions): Iterable<string> {
  const { env, platform } = options;
  const path = paths(options);
  const names = platform === "win32" ? windowsNames(env) : ["opencode"];
  const onPath = (variable(options, "PATH") ?? "").split(path.delimiter);
  for (const folder of [...onPath, ...installFolders(options)])
    // A relative entry in PATH could run a program from the open folder.
    if (path.isAbsolute(folder)) for (const name of names) yield path.join(folder, name);
  yield* privateExecutables(options);
}

function windowsNames(env: LocateOptions["env"]): string[] {
  const extensions = (env.PATHEXT || ".COM;.EXE;.BAT;.CMD").toLowerCase().split(";");
  return extensions
    .filter((extension) => extension.startsWith("."))
    .map((extension) => `opencode${extension}`);
}

function installFolders(options: LocateOptions): string[] {
  const { platform, home } = options;
  const path = paths(options);
  const inHome = (...names: string[]) => path.join(home, ...names);
  const under = (name: string, ...names: string[]) => {
    const folder = variable(options, name);
    return folder ? [path.join(folder, ...names)] : [];
  };
  const everywhere = [
    ...under("OPENCODE_INSTALL_DIR"),
    ...under("XDG_BIN_DIR"),
    inHome(".opencode", "bin"),
    inHome(".local", "bin"),
    inHome("bin"),
    ...under("BUN_INSTALL", "bin"),
    inHome(".bun", "bin"),
    ...under("PNPM_HOME"),
    ...under("VOLTA_HOME", "bin"),
    inHome(".volta", "bin"),
  ];
  if (platform === "win32")
    return [
      ...everywhere,
      ...under("npm_config_prefix"),
      ...under("APPDATA", "npm"),
      ...under("LOCALAPPDATA", "pnpm"),
      ...under("LOCALAPPDATA", "Microsoft", "WinGet", "Links"),
      inHome("scoop", "shims"),
      ...under("ChocolateyInstall", "bin"),
    ];
  return [
    ...everywhere,
    ...under("npm_config_prefix", "bin"),
    inHome(".npm-global", "bin"),
    inHome(".npm-packages", "bin"),
    inHome(".local", "share", "pnpm"),
    inHome(".local", "share", "mise", "shims"),
    inHome(".nix-profile", "bin"),
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/bin",
  ];
}

/**
 * Resolves npm's `opencode.cmd`, which only a shell can run, to the executable that it would start. The extension never
 * uses a shell.
 */
async function behindShim(file: string, options: LocateOptions): Promise<Located> {
  if (options.platform !== "win32" || !/\.(cmd|bat)$/i.test(file)) return file;
  const folder = win32.dirname(file);
  const script = (await options.files.readText(file)) ?? "";
  const named = [...script.matchAll(/%(?:~dp0|dp0%)\\?([^"%\r\n]+\.exe)/gi)].map(([, path]) => path ?? "");
  const packages = ["opencode-windows-x64", "opencode-windows-x64-baseline", "opencode-windows-arm64"];
  const modules = win32.join("node_modules", "opencode-ai");
  const behind = [
    ...named.filter((path) => win32.basename(path).toLowerCase() !== "node.exe"),
    win32.join(modules, "bin", "opencode.exe"),
    ...packages.flatMap((name) => [
      win32.join(modules, "node_modules", name, "bin", "opencode.exe"),
      win32.join("node_modules", name, "bin", "opencode.exe"),
    ]),
  ];
  for (const path of behind) {
    const executable = win32.join(folder, path);
    if (await options.files.isExecutable(executable)) return executable;
  }
  return failures.badPath(file, sentence("it is a command script that doesn't lead to an opencode.exe"));
}

function paths({ platform }: LocateOptions): typeof posix {
  return platform === "win32" ? win32 : posix;
}

/** Names of Windows variables are case-insensitive (`Path`, `PATH`). */
function variable({ env, platform }: LocateOptions, name: string): string | undefined {
  if (platform !== "win32") return env[name];
  const key = Object.keys(env).find((one) => one.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}
