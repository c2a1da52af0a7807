import { randomBytes } from "node:crypto";
import {
  access,
  chmod,
  constants,
  lstat,
  mkdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { messageOf, Refusal } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";

/** Whose configuration: that of one folder, or that of the user in every folder. */
export type ConfigScope = "project" | "user";

export interface ConfigPlaces {
  /** The folder that is open; undefined if none is. */
  readonly directory: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** A file of OpenCode's configuration as it is to become. */
export interface ConfigChange {
  /** Links followed. */
  readonly path: string;
  /** Undefined: there is no such file yet. */
  readonly before?: string | undefined;
  readonly after: string;
}

/** The files in which OpenCode looks for its configuration; where there is none of them, the first one is to be made. */
export function configFiles(scope: ConfigScope, places: ConfigPlaces): readonly [string, ...string[]] {
  return scope === "project" ? projectFiles(places) : userFiles(places);
}

/** Undefined: there is no such file. Throws a {@link Refusal} if it cannot be read. */
export async function readConfig(path: string): Promise<{ path: string; text: string } | undefined> {
  const real = await followLinks(path);
  if (real === undefined) return undefined;
  const bytes = await readFile(real).catch((error: unknown) => refuse(real, "read", error));
  try {
    return { path: real, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    throw new Refusal(
      "unavailable",
      sentence("{0} isn't UTF-8 text. Save it as UTF-8, then try again. Nothing was changed.", real),
    );
  }
}

/**
 * Writes a change; readers see the old text or the new one, never a part, and the file keeps its mode. Throws a
 * {@link Refusal} if it cannot be, or if the file is no longer what the change was made for.
 */
export async function writeConfig({ path, before, after }: ConfigChange): Promise<void> {
  if ((await readConfig(path))?.text !== before)
    throw new Refusal(
      "unavailable",
      sentence("{0} changed in the meantime. Nothing was written. Try again.", path),
    );
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    if (before !== undefined) await access(path, constants.W_OK);
    await writeFile(draft, after, { flag: "wx" });
    if (before !== undefined) await chmod(draft, (await stat(path)).mode);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    refuse(path, "written", error);
  }
}

function projectFiles({ directory }: ConfigPlaces): readonly [string, ...string[]] {
  if (directory === undefined)
    throw new Refusal(
      "unavailable",
      sentence("No folder is open. Open one, or select the user configuration."),
    );
  const file = (...names: string[]) => join(directory, ...names);
  return [
    file("opencode.json"),
    file("opencode.jsonc"),
    file(".opencode", "opencode.json"),
    file(".opencode", "opencode.jsonc"),
  ];
}

function userFiles({ directory, env, home }: ConfigPlaces): readonly [string, ...string[]] {
  if (env.OPENCODE_CONFIG) return [resolve(directory ?? home, env.OPENCODE_CONFIG)];
  const { XDG_CONFIG_HOME: configured } = env;
  const folder = configured && isAbsolute(configured) ? configured : join(home, ".config");
  return [join(folder, "opencode", "opencode.jsonc"), join(folder, "opencode", "opencode.json")];
}

/** Undefined: there is nothing. */
async function followLinks(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return refuse(path, "read", error);
    const isLink = await lstat(path).then(
      () => true,
      () => false,
    );
    if (!isLink) return undefined;
    throw new Refusal(
      "unavailable",
      sentence("{0} is a broken link. Fix it, then try again. Nothing was changed.", path),
    );
  }
}

function refuse(path: string, what: "read" | "written", error: unknown): never {
  const reason = (error as NodeJS.ErrnoException).code ?? messageOf(error);
  throw new Refusal(
    "unavailable",
    what === "read"
      ? sentence("Can't read {0} ({1}). Nothing was changed.", path, reason)
      : sentence("Can't write {0} ({1}). Nothing was changed.", path, reason),
  );
}
