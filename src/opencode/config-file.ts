import { randomBytes } from "node:crypto";
import {
  access,
  chmod,
  chown,
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

/** Whether a configuration applies to one folder or to all folders of the user. */
export type ConfigScope = "project" | "user";

export interface ConfigPlaces {
  /** The open folder, if there is one. */
  readonly directory: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** A change of one of OpenCode's configuration files. */
export interface ConfigChange {
  /** The path with links resolved. */
  readonly path: string;
  /** Undefined if the file does not exist yet. */
  readonly before?: string | undefined;
  readonly after: string;
}

/** The files in which OpenCode looks for its configuration. If none exists, the first one is created. */
export function configFiles(scope: ConfigScope, places: ConfigPlaces): readonly [string, ...string[]] {
  return scope === "project" ? projectFiles(places) : userFiles(places);
}

/** Undefined if the file does not exist. Throws a {@link Refusal} if it cannot be read. */
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
 * Writes a change atomically and keeps the file's mode, owner and group. Throws a {@link Refusal} if writing fails, or
 * if the file has changed since the change was prepared.
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
    // Private until it has the file's mode, as the file may contain keys: also if this process is killed in between.
    await writeFile(draft, after, { flag: "wx", mode: before === undefined ? 0o666 : 0o600 });
    if (before !== undefined) await matchAccess(draft, path);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    if (error instanceof Refusal) throw error;
    refuse(path, "written", error);
  }
}

/** Gives a draft the owner, the group and the mode of the file that it replaces. Throws a {@link Refusal} if it may not. */
async function matchAccess(draft: string, path: string): Promise<void> {
  const { uid, gid, mode } = await stat(path);
  const drafted = await stat(draft);
  if (uid !== drafted.uid || gid !== drafted.gid)
    await chown(draft, uid, gid).catch(() => {
      throw new Refusal(
        "unavailable",
        sentence(
          "{0} belongs to another user or group, which writing it would change. Edit it by hand. Nothing was changed.",
          path,
        ),
      );
    });
  await chmod(draft, mode);
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

/** Undefined if there is no such file. */
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
