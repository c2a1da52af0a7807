import { randomUUID } from "node:crypto";
import { link, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, ifPresent, parseJson } from "./json-files.ts";
import { draftOf } from "./private-files.ts";
import { isAlive, isSame, startOf } from "./processes.ts";

/** Starting takes a second or two. A lock of this age is stale. */
const MAX_AGE_MS = 60_000;

/** The exclusive right to start something, held by at most one process at a time. */
export class StartLock {
  private constructor(
    private readonly path: string,
    private readonly content: string,
  ) {}

  /** Undefined if another process holds the lock. A stale lock is removed, so that the next attempt can succeed. */
  static async tryAcquire(path: string): Promise<StartLock | undefined> {
    const { pid } = process;
    const processStart = await startOf(pid).catch(() => undefined);
    const content = JSON.stringify({ pid, processStart, token: randomUUID() });
    const draft = draftOf(path);
    try {
      await writeFile(draft, content, { flag: "wx", mode: 0o600 });
      // Links a complete file, because an empty lock could not be attributed to its holder.
      await link(draft, path);
      return new StartLock(path, content);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    } finally {
      await rm(draft, { force: true });
    }
    await removeLeft(path);
    return undefined;
  }

  /** Removes stale locks from the folder, which might otherwise never be requested again. */
  static async sweep(folder: string): Promise<void> {
    const names = await readdir(folder);
    const locks = names.filter((name) => name.endsWith(".lock"));
    await Promise.all(locks.map((name) => removeLeft(join(folder, name))));
  }

  async release(): Promise<void> {
    if ((await read(this.path)) === this.content) await rm(this.path, { force: true });
  }
}

/**
 * Removes a stale lock. A second lock ensures that only one process does so at a time: a slower one would remove a lock
 * acquired in the meantime.
 */
async function removeLeft(path: string): Promise<void> {
  const found = await read(path);
  if (found === undefined || !((await isLeft(found)) || (await isOld(path)))) return;
  const guard = await StartLock.tryAcquire(`${path}.left`);
  try {
    if (guard && (await read(path)) === found) await rm(path, { force: true });
  } finally {
    await guard?.release();
  }
}

function read(path: string): Promise<string | undefined> {
  return ifPresent(readFile(path, "utf8"));
}

/** Whether the holder of the lock is known to be gone. */
async function isLeft(content: string): Promise<boolean> {
  const { pid, processStart } = (parseJson(content) ?? {}) as { pid?: unknown; processStart?: string };
  if (typeof pid !== "number") return true;
  return processStart === undefined ? !isAlive(pid) : !(await isSame(pid, processStart).catch(() => true));
}

async function isOld(path: string): Promise<boolean> {
  const { mtimeMs = Date.now() } = (await ifPresent(stat(path))) ?? {};
  return Date.now() - mtimeMs > MAX_AGE_MS;
}
