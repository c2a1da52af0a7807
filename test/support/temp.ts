import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set<string>();

/** A new empty directory, removed when the process ends. The path is short enough for sockets in it. */
export function tempDir(name = "t"): string {
  if (made.size === 0) process.once("exit", removeAll);
  const directory = mkdtempSync(join(realpathSync(tmpdir()), `aa-${name}-`));
  made.add(directory);
  return directory;
}

function removeAll(): void {
  for (const directory of made) rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}
