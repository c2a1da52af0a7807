import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { ConnectionError } from "../engine/connection.ts";
import { failures } from "./failures.ts";
import type { Environment } from "./server-program.ts";
import { supportOf, versionIn } from "./versions.ts";

/** An executable that takes longer to say its version counts as unknown. */
const TIMEOUT_MS = 10_000;

/** By executable, modification time and size. A look takes most of a second. */
const known = new Map<string, Promise<string | undefined>>();

/**
 * The version that an executable reports, without starting a server. Undefined if it reports none. Only an unchanged file
 * of a supported version is not asked again: a version manager's file stays the same when its version changes, and a user
 * whose version was refused is about to change it.
 */
export async function readVersion(executable: string, env: Environment): Promise<string | undefined> {
  const file = await stat(executable).catch(() => undefined);
  if (!file) return undefined;
  const { mtimeMs, size } = file;
  const key = `${executable} ${mtimeMs} ${size}`;
  const looking = known.get(key) ?? look(executable, env);
  known.set(key, looking);
  const version = await looking;
  if (supportOf(version) !== "supported") known.delete(key);
  return version;
}

/**
 * Throws a `ConnectionError` if the executable reports a version that is not supported. Asks it each time, as a version
 * manager may have switched to another version.
 */
export async function requireSupported(executable: string, env: Environment): Promise<void> {
  const version = await look(executable, env);
  const support = supportOf(version);
  if (version === undefined || support === "supported" || support === "unknown") return;
  throw new ConnectionError(support === "too-new" ? failures.tooNew(version) : failures.tooOld(version));
}

function look(executable: string, env: Environment): Promise<string | undefined> {
  // Not the open folder, whose configuration need not be read for this.
  const options = {
    cwd: homedir(),
    env,
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
    windowsHide: true,
  } as const;
  return new Promise((resolve) => {
    try {
      execFile(executable, ["--version"], options, (error, stdout) =>
        resolve(error ? undefined : versionIn(stdout)),
      ).stdin?.end();
    } catch {
      // It throws what it doesn't report, such as that there is no memory.
      resolve(undefined);
    }
  });
}
