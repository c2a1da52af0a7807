import { randomUUID } from "node:crypto";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { isAlive } from "./processes.ts";

/** Starting takes a second or two; a lock of this age was left behind. */
const MAX_AGE_MS = 60_000;

/** The right to start something of which there is to be one, held by one process at a time. */
export class StartLock {
  private constructor(
    private readonly path: string,
    private readonly content: string,
  ) {}

  /** Undefined: somebody else holds it now. A lock whose holder died, or that is too old, is taken over. */
  static async tryAcquire(path: string): Promise<StartLock | undefined> {
    const content = JSON.stringify({ pid: process.pid, token: randomUUID() });
    try {
      await writeFile(path, content, { flag: "wx", mode: 0o600 });
      return new StartLock(path, content);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const found = await read(path);
    if (found !== undefined && (isLeft(found) || (await isOld(path)))) await removeLeft(path, found);
    return undefined;
  }

  async release(): Promise<void> {
    if ((await read(this.path)) === this.content) await rm(this.path, { force: true });
  }
}

/**
 * Removes a lock that was left behind. Of those who found it so, one does it at a time, or the slower one would remove
 * what somebody has acquired meanwhile.
 */
async function removeLeft(path: string, found: string): Promise<void> {
  const guard = `${path}.left`;
  try {
    await writeFile(guard, "", { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (await isOld(guard)) await rm(guard, { force: true });
    return;
  }
  try {
    if ((await read(path)) === found) await rm(path, { force: true });
  } finally {
    await rm(guard, { force: true });
  }
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Whether the holder is gone. One that has not written its name yet is not: its lock is left when it is old. */
function isLeft(content: string): boolean {
  if (!content) return false;
  try {
    const { pid } = JSON.parse(content) as { readonly pid: unknown };
    return typeof pid !== "number" || !isAlive(pid);
  } catch {
    return true;
  }
}

async function isOld(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > MAX_AGE_MS;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
