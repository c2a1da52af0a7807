import { access, constants, readFile, stat } from "node:fs/promises";
import { posix, win32 } from "node:path";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { sentence } from "../engine/sentence.ts";
import { failures } from "./failures.ts";

/** The parts of the file system that the search needs. */
interface FileProbe {
  /** Whether the path is an executable file, following links. */
  isExecutable(path: string): Promise<boolean>;
  exists(path: string): Promise<boolean>;
  /** Undefined if the file cannot be read. */
  readText(path: string): Promise<string | undefined>;
}

export interface LocateOptions {
  /** The path that a user configured. Empty if none. */
  readonly configuredPath: string;
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly files: FileProbe;
}

export type Located = { readonly executable: string } | ConnectionFailure;

/** The path of OpenCode's executable on this machine. Throws a `ConnectionError` if there is no usable one. */
export async function findOpenCode(
  options: Pick<LocateOptions, "configuredPath" | "env" | "home">,
): Promise<string> {
  const located = await locateOpenCode({ ...options, platform: process.platform, files: diskProbe });
  if ("code" in located) throw new ConnectionError(located);
  return located.executable;
}

const diskProbe: FileProbe = {
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
};

/** Finds OpenCode's executable: at the configured path, otherwise on PATH, otherwise where installers put it. */
export async function locateOpenCode(options: LocateOptions): Promise<Located> {
  const configured = options.configuredPath.trim();
  if (configured) return locateConfigured(configured, options);
  let unusable: ConnectionFailure | undefined;
  for (const candidate of candidates(options)) {
    if (!(await options.files.isExecutable(candidate))) continue;
    const located = await behindShim(candidate, options);
    if ("executable" in located) return located;
    unusable ??= located;
  }
  return unusable ?? failures.notFound();
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
  if (options.platform !== "win32" || !/\.(cmd|bat)$/i.test(file)) return { executable: file };
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
    if (await options.files.isExecutable(executable)) return { executable };
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
