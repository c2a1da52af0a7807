import { access, constants, writeFile } from "node:fs/promises";
import { posix, win32 } from "node:path";
import { ensurePrivateFolder } from "../state/private-files.ts";
import { defaultStateFolder, type UserPlaces } from "../state/state-folder.ts";
import { TESTED_VERSIONS } from "./versions.ts";

const { newest } = TESTED_VERSIONS;

/** The package managers that can install a private copy, each with its command. The first one on PATH is used. */
const PRIVATE_INSTALL: Readonly<Record<string, (folder: string, name: string) => string>> = {
  npm: (folder, name) => `npm install --prefix ${folder} --ignore-scripts ${name}`,
  pnpm: (folder, name) => `pnpm add --dir ${folder} --config.node-linker=hoisted --ignore-scripts ${name}`,
  bun: (folder, name) => `bun add --cwd ${folder} --ignore-scripts ${name}`,
};

/** OpenCode's packages of executables: those for processors without AVX2 and for musl have a name of their own. */
const VARIANTS = ["", "-baseline", "-musl", "-baseline-musl"];

/** Where the executables of the private copy are, if it is installed. Some may not run on this machine. */
export function privateExecutables(places: UserPlaces): string[] {
  const { platform } = places;
  const path = pathsOf(platform);
  const [system, file] = platform === "win32" ? ["windows", "opencode.exe"] : [platform, "opencode"];
  return VARIANTS.map((variant) =>
    path.join(folderOf(places), "node_modules", `opencode-${system}-${process.arch}${variant}`, "bin", file),
  );
}

/** The terminal command that installs OpenCode 1 for all programs of this user. */
export function installCommand(platform: NodeJS.Platform): string {
  return platform === "win32"
    ? `npm install -g opencode-ai@${newest}`
    : `curl -fsSL https://opencode.ai/install | bash -s -- --version ${newest}`;
}

/**
 * The terminal command that installs a private copy of OpenCode 1 in the extension's own storage, whose folder is
 * created. It changes neither PATH nor another OpenCode. Undefined if no package manager that can do that is on PATH.
 */
export async function preparePrivateCopy(places: UserPlaces): Promise<string | undefined> {
  const manager = await firstOnPath(Object.keys(PRIVATE_INSTALL), places);
  const command = manager && PRIVATE_INSTALL[manager];
  if (!command) return undefined;
  const folder = folderOf(places);
  await ensurePrivateFolder(folder);
  // Otherwise a package manager would take the next folder upwards that has one.
  await writeFile(pathsOf(places.platform).join(folder, "package.json"), '{ "private": true }\n');
  return command(`"${folder}"`, `opencode-ai@${newest}`);
}

function folderOf(places: UserPlaces): string {
  return pathsOf(places.platform).join(defaultStateFolder(places), "opencode-1");
}

function pathsOf(platform: NodeJS.Platform): typeof posix {
  return platform === "win32" ? win32 : posix;
}

async function firstOnPath(
  names: readonly string[],
  { platform, env }: UserPlaces,
): Promise<string | undefined> {
  const path = pathsOf(platform);
  const folders = (env.PATH ?? env.Path ?? "")
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder));
  const endings = platform === "win32" ? [".cmd", ".exe"] : [""];
  for (const name of names)
    for (const folder of folders)
      for (const ending of endings) if (await isExecutable(path.join(folder, name + ending))) return name;
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
