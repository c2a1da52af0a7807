import { randomUUID } from "node:crypto";
import { link, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, ifPresent, parseJson } from "./json-files.ts";
import { draftOf } from "./private-files.ts";
import { isAlive, isSame, startOf } from "./processes.ts";

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
    const { pid } = process;
    const content = JSON.stringify({ pid, processStart: await startOf(pid), token: randomUUID() });
    const draft = draftOf(path);
    try {
      await writeFile(draft, content, { flag: "wx", mode: 0o600 });
      // With its content from the first moment on: a lock that says nothing could be anybody's.
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

  /** Removes the locks in the folder that nobody holds any more and nobody may ever ask for again. */
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
 * Removes a lock that was left behind. Of those who find it so, one does it at a time, or the slower one would remove
 * what somebody has acquired meanwhile.
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

/** Whether the holder is gone. */
async function isLeft(content: string): Promise<boolean> {
  const { pid, processStart } = (parseJson(content) ?? {}) as { pid?: unknown; processStart?: string };
  if (typeof pid !== "number") return true;
  return processStart === undefined ? !isAlive(pid) : !(await isSame(pid, processStart));
}

async function isOld(path: string): Promise<boolean> {
  const { mtimeMs = Date.now() } = (await ifPresent(stat(path))) ?? {};
  return Date.now() - mtimeMs > MAX_AGE_MS;
}
