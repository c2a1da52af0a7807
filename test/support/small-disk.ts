import { spawnSync } from "node:child_process";
import { appendFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "./temp.ts";

/** A separate file system, which can be filled; undefined if this user may not mount one. */
export function mountSmall(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const folder = tempDir("small");
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", folder]);
  return status === 0 ? folder : undefined;
}

/** A file system that ignores case; undefined if there is no NTFS-3G, or this user may not mount anything. */
export function mountIgnoringCase(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const image = join(tempDir("disk"), "image");
  writeFileSync(image, "");
  truncateSync(image, 16 << 20);
  const folder = tempDir("ignoring-case");
  const run = (command: string, ...args: readonly string[]): boolean => spawnSync(command, args).status === 0;
  return run("mkntfs", "-F", "-Q", image) && run("lowntfs-3g", image, folder, "-o", "ignore_case")
    ? folder
    : undefined;
}

export function unmount(folder: string): void {
  spawnSync("umount", ["--lazy", folder]);
}

/** Fills the disk to the last byte, and again whenever something is removed; returns a function that frees it. */
export function fill(folder: string): () => void {
  const file = join(folder, "filler");
  const fillUp = (): void => {
    for (let size = 1 << 20; size >= 1; size >>= 1)
      try {
        for (;;) appendFileSync(file, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
  };
  fillUp();
  const again = setInterval(fillUp, 20);
  return () => {
    clearInterval(again);
    rmSync(file, { force: true });
  };
}

/** Prevents files from being added or removed; undefined if this system can't do that. */
export function freeze(folder: string): (() => void) | undefined {
  const set = (flag: string): boolean => spawnSync("chattr", [flag, folder]).status === 0;
  return set("+i") ? () => void set("-i") : undefined;
}
